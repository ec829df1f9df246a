"""The tokens of people, in files that only their owner can read: the admin's own, and those of users.

The users' file has the form of the real API server's `--token-auth-file`: a line `TOKEN,NAME,UID,"GROUP,…"`
for each. It is read again when it has changed, so a user can be added while the cluster runs.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import secrets
from collections.abc import Sequence
from pathlib import Path

from gpuworkshop.lab.api.users import ADMIN, AUTHENTICATED, User
from gpuworkshop.processes.state import replace_file

ADMIN_FILE, USERS_FILE = "admin-token", "users.csv"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")


def admin_token(folder: Path) -> str:
    """The admin's token; a new one where there is none, or a damaged one."""
    path = folder / ADMIN_FILE
    found = _text(path)
    if not _TOKEN.fullmatch(found):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = new_token()
        replace_file(path, found)
    return found


def add_user(folder: Path, name: str, groups: Sequence[str] = ()) -> str:
    """Give a user a token, or groups, of its own; a user who has a token already keeps it."""
    rows = [row for row in _rows(folder / USERS_FILE) if row[1] != name]
    known = next((row[0] for row in _rows(folder / USERS_FILE) if row[1] == name), "")
    token = known or new_token()
    text = io.StringIO()
    csv.writer(text).writerows([*rows, [token, name, name, ",".join(groups)]])
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(folder / USERS_FILE, text.getvalue())
    return token


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(32)


class StaticTokens:
    """Who has which of the tokens in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read_at: tuple[object, ...] = ()
        self._users: dict[bytes, User] = {}

    def user(self, token: str) -> User | None:
        """Whose token it is."""
        seen = tuple(_stamp(self._folder / name) for name in (ADMIN_FILE, USERS_FILE))
        if seen != self._read_at:
            self._users, self._read_at = self._read(), seen
        # By its digest, so that how long the search takes says nothing about the tokens.
        return self._users.get(_digest(token))

    def _read(self) -> dict[bytes, User]:
        users = {}
        for token, name, uid, groups in _rows(self._folder / USERS_FILE):
            named = [group for group in groups.split(",") if group]
            users[_digest(token)] = User(name, (*named, AUTHENTICATED), uid)
        if _TOKEN.fullmatch(found := _text(self._folder / ADMIN_FILE)):
            users[_digest(found)] = ADMIN
        return users


def _rows(path: Path) -> list[list[str]]:
    """The lines of the users' file that are whole: token, name, uid, groups."""
    rows = csv.reader(io.StringIO(_text(path)))
    return [[*row, ""][:4] for row in rows if len(row) >= 3 and row[0] and row[1]]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
