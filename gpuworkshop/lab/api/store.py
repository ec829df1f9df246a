"""The objects of the cluster: in memory, with SQLite behind it, so that kill -9 loses nothing.

Every write is one transaction and one new revision, which is the object's resourceVersion. All of it is
synchronous: between two awaits nobody else can change anything. What is handed out is shared; nobody may
change it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gpuworkshop.errors import LabError
from gpuworkshop.lab.api.changes import Change, ChangeLog, Kind
from gpuworkshop.lab.api.objects import Object, encoded, meta

_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS objects (
  resource TEXT, namespace TEXT, name TEXT, revision INTEGER, body BLOB,
  PRIMARY KEY (resource, namespace, name)
);
CREATE TABLE IF NOT EXISTS deletions (one INTEGER PRIMARY KEY CHECK (one = 1), revision INTEGER);
INSERT OR IGNORE INTO deletions VALUES (1, 0);
"""


class Stale(Exception):
    """The object has another resourceVersion than the writer believes, or is gone."""


class Store:
    """All objects, by resource (`pods`, `deployments.apps`), namespace and name.

    `path` is the SQLite file, or ":memory:". Raises LabError when the file is not a database.
    """

    def __init__(self, path: str | Path = ":memory:") -> None:
        self._objects: dict[str, dict[tuple[str, str], Object]] = {}
        try:
            # Autocommit: each statement that stands alone is a transaction of its own.
            self._database = sqlite3.connect(path, isolation_level=None)
            self._database.executescript(_SCHEMA)
            self.revision = self._load()
        except (sqlite3.Error, ValueError) as error:
            raise LabError(
                f"the cluster's state in {path} cannot be read: {error}",
                step="opening the lab's cluster",
                todo="start with an empty cluster: gpuworkshop lab reset",
            ) from error
        self.log = ChangeLog(self.revision)

    def _load(self) -> int:
        (revision,) = self._database.execute("SELECT revision FROM deletions").fetchone()
        rows = self._database.execute("SELECT resource, namespace, name, revision, body FROM objects")
        for resource, namespace, name, written, body in rows:
            self._objects.setdefault(resource, {})[namespace, name] = msgspec.json.decode(body)
            revision = max(revision, written)
        return int(revision)

    def find(self, resource: str, namespace: str, name: str) -> Object | None:
        """The object, or None."""
        return self._objects.get(resource, {}).get((namespace, name))

    def list(self, resource: str, namespace: str = "") -> list[Object]:
        """The objects of a namespace, or of all; in the order of namespace and name."""
        held = self._objects.get(resource, {})
        return [held[key] for key in sorted(held) if not namespace or key[0] == namespace]

    def everything(self) -> Iterator[tuple[str, Object]]:
        """Every object, with its resource."""
        for resource, held in self._objects.items():
            for obj in held.values():
                yield resource, obj

    def write(self, resource: str, obj: Object, expected: str | None) -> Object:
        """Write `obj`, which must not be changed afterwards, over the version `expected`.

        `expected` is the resourceVersion that is replaced, None for a new object. Raises Stale when that
        is not what is stored, and sqlite3.Error, with nothing changed, when the disk refuses.
        """
        key = (meta(obj).get("namespace") or "", obj["metadata"]["name"])
        previous = self._objects.get(resource, {}).get(key)
        if (previous and previous["metadata"]["resourceVersion"]) != expected:
            raise Stale
        revision = self.revision + 1
        obj["metadata"]["resourceVersion"] = str(revision)
        body = encoded(obj)
        self._database.execute(
            "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)", (resource, *key, revision, body)
        )
        self.revision = revision
        self._objects.setdefault(resource, {})[key] = obj
        kind: Kind = "MODIFIED" if previous else "ADDED"
        self.log.append(Change(kind, resource, obj, previous, revision, body))
        return obj

    def remove(self, resource: str, namespace: str, name: str) -> Object | None:
        """Remove an object; its last state, with the revision of its removal, or None if it is not there."""
        key = (namespace, name)
        previous = self._objects.get(resource, {}).get(key)
        if previous is None:
            return None
        revision = self.revision + 1
        self._database.execute("BEGIN")
        try:
            self._database.execute(
                "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?", (resource, *key)
            )
            self._database.execute("UPDATE deletions SET revision = ?", (revision,))
            self._database.execute("COMMIT")
        except sqlite3.Error:
            self._database.execute("ROLLBACK")
            raise
        self.revision = revision
        del self._objects[resource][key]
        last = {**previous, "metadata": {**previous["metadata"], "resourceVersion": str(revision)}}
        self.log.append(Change("DELETED", resource, last, previous, revision))
        return last

    def close(self) -> None:
        """Close the file."""
        self._database.close()
