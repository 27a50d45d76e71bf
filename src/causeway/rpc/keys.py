"""Keys with which services sign what they send (`causeway.rpc.signatures`): Ed25519, in PEM files.

A folder of public keys says who is trusted, and as what::

    control/NAME.pem    a service of the control plane
    hosts/HOST.pem      the compute of a host, by its option `host`

A file may have several keys, so a new one can be added before the old one is taken out. Files that are added, changed or deleted
count within `LOOK_EVERY` seconds, without a restart.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import stat
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from causeway import durable
from causeway.errors import Misconfigured

LOG = logging.getLogger(__name__)

CONTROL, HOSTS = "control", "hosts"
# Seconds between two checks for changed files.
LOOK_EVERY = 10.0
_BLOCK = re.compile(rb"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", re.DOTALL)


@dataclass(frozen=True)
class Sender:
    """Whose key it is. ``name``: of a host, if ``is_host``; else of a service of the control plane."""

    name: str
    is_host: bool

    def __str__(self) -> str:
        return f"host {self.name}" if self.is_host else f"{self.name} of the control plane"


def fingerprint(key: Ed25519PublicKey) -> str:
    """The name under which messages mention a key."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:32]


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """Raises Misconfigured if it can't be read, is no such key, or is open to others than its owner and group."""
    try:
        if path.stat().st_mode & stat.S_IRWXO:
            raise Misconfigured(
                f"The private key {path} is open to everybody. Run `chmod o= {path}`, or make another one."
            )
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as failure:
        raise Misconfigured(f"The private key {path} can't be used: {failure}") from failure
    if not isinstance(key, Ed25519PrivateKey):
        raise Misconfigured(f"The private key {path} can't be used: it is no Ed25519 key.")
    return key


def make_pair(private: Path, public: Path) -> None:
    """Writes a new pair of keys, or the public one of a private key that is there alone.

    Raises FileExistsError if the public key exists already, Misconfigured if the private one can't be used, and OSError.
    """
    if public.exists():
        raise FileExistsError(f"{public} exists already")
    pem = serialization.Encoding.PEM
    if private.exists():
        # Whoever made it died before the public key was written.
        key = read_private_key(private)
    else:
        key = Ed25519PrivateKey.generate()
        content = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        durable.write(private, content, mode=0o600)
    durable.write(
        public, key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo), mode=0o644
    )


class TrustedKeys:
    """The keys in a folder, by their fingerprints. ``now``: a clock in seconds.

    Raises Misconfigured if a file can't be used. If that happens later, the keys stay as they were, and the log says so.
    """

    def __init__(self, folder: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._now = now
        self._lock = threading.Lock()
        self._files = _files(folder)
        self._keys = _read(folder, self._files)
        self._looked_at = now()

    def find(self, wanted: str) -> tuple[Ed25519PublicKey, Sender] | None:
        """The key with this fingerprint, and whose it is; None if no trusted sender has it."""
        return self._current().get(wanted)

    def senders(self) -> set[Sender]:
        return {sender for _key, sender in self._current().values()}

    def _current(self) -> dict[str, tuple[Ed25519PublicKey, Sender]]:
        with self._lock:
            if self._now() - self._looked_at >= LOOK_EVERY:
                self._looked_at = self._now()
                self._look()
            return self._keys

    def _look(self) -> None:
        try:
            files = _files(self._folder)
            if files != self._files:
                self._keys = _read(self._folder, files)
                self._files = files
                LOG.info("The trusted keys in %s have changed: there are %d now", self._folder, len(self._keys))
        except Misconfigured as failure:
            LOG.error("The trusted keys stay as they were: %s", failure.message)


# file -> what changes when it is written again
_Files = dict[Path, tuple[int, int, int]]


def _files(folder: Path) -> _Files:
    found: _Files = {}
    for kind in (CONTROL, HOSTS):
        try:
            with os.scandir(folder / kind) as entries:
                for entry in entries:
                    if entry.name.endswith(".pem") and not entry.name.startswith("."):
                        seen = entry.stat()
                        found[Path(entry.path)] = (seen.st_ino, seen.st_mtime_ns, seen.st_size)
        except FileNotFoundError:
            continue
        except OSError as failure:
            raise Misconfigured(f"The trusted keys in {folder / kind} can't be read: {failure}") from failure
    return found


def _read(folder: Path, files: _Files) -> dict[str, tuple[Ed25519PublicKey, Sender]]:
    keys: dict[str, tuple[Ed25519PublicKey, Sender]] = {}
    for path in sorted(files):
        sender = Sender(path.name.removesuffix(".pem"), is_host=path.parent.name == HOSTS)
        for key in _public_keys(path):
            name = fingerprint(key)
            if name in keys and keys[name][1] != sender:
                raise Misconfigured(
                    f"{sender} and {keys[name][1]} have the same key in {folder}: give one of them a key of its own."
                )
            keys[name] = key, sender
    if not any(not sender.is_host for _key, sender in keys.values()):
        raise Misconfigured(
            f"There is no key of the control plane in {folder / CONTROL}: every order would be refused. Put a NAME.pem there."
        )
    return keys


def _public_keys(path: Path) -> list[Ed25519PublicKey]:
    try:
        keys = [serialization.load_pem_public_key(block) for block in _BLOCK.findall(path.read_bytes())]
    except (OSError, ValueError, UnsupportedAlgorithm) as failure:
        raise Misconfigured(f"The public key {path} can't be used: {failure}") from failure
    ours = [key for key in keys if isinstance(key, Ed25519PublicKey)]
    if not ours or len(ours) < len(keys):
        raise Misconfigured(f"The public key {path} can't be used: it is no Ed25519 key in PEM form.")
    return ours
