"""Private keys in files that only their owner can read; one that is damaged is made anew."""

from __future__ import annotations

from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from gpuworkshop.processes.state import replace_file


def key_at(path: Path) -> ec.EllipticCurvePrivateKey:
    """The key at `path`, 0600; a new one where there is none that can be used."""
    found = read_key(path)
    if found is None:
        found = ec.generate_private_key(ec.SECP256R1())
        write_key(path, found)
    return found


def read_key(path: Path) -> ec.EllipticCurvePrivateKey | None:
    """The key at `path`, on the curve P-256; None when there is no such."""
    try:
        found = load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm):
        return None
    is_usable = isinstance(found, ec.EllipticCurvePrivateKey) and isinstance(found.curve, ec.SECP256R1)
    return found if is_usable else None  # type: ignore[return-value]  # it is an elliptic curve's


def write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    """Replace the key at `path`."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    replace_file(path, pem.decode())
