"""The keys with which services sign their messages (`causeway.rpc.signatures`): Ed25519, in PEM files.

A folder of public keys has the trusted services::

    control/NAME.pem    a service of the control plane
    hosts/HOST.pem      the compute of a host, by its option `host`

A file may have several keys, so an operator can add a new key before removing the old one. When files are added, changed or
deleted, this takes effect within `LOOK_EVERY` seconds, without a restart.
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
    """The owner of a key. ``name``: of a host if ``is_host``, else of a service of the control plane."""

    name: str
    is_host: bool

    def __str__(self) -> str:
        return f"host {self.name}" if self.is_host else f"{self.name} of the control plane"


def fingerprint(key: Ed25519PublicKey) -> str:
    """Returns the name by which messages refer to a key."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()[:32]


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """Reads a private key. Raises Misconfigured if the file can't be read, has no Ed25519 key, or everybody can access it."""
    try:
        if path.stat().st_mode & stat.S_IRWXO:
            raise Misconfigured(
                f"Everybody can access the private key {path}. Run `chmod o= {path}`, or make another key."
            )
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as failure:
        raise Misconfigured(f"The private key {path} can't be used: {failure}") from failure
    if not isinstance(key, Ed25519PrivateKey):
        raise Misconfigured(f"The private key {path} can't be used: it is not an Ed25519 key.")
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
    """The trusted keys in a folder, by fingerprint. ``now``: a clock in seconds.

    Raises Misconfigured if a file can't be used when the process starts. If that happens later, the former keys stay in use, and
    the log says so.
    """

    def __init__(self, folder: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._now = now
        self._lock = threading.Lock()
        self._files = _files(folder)
        self._keys = _read(folder, self._files)
        self._checked_at = now()

    def find(self, wanted: str) -> tuple[Ed25519PublicKey, Sender] | None:
        """Returns the trusted key with this fingerprint and its owner; None if there is none."""
        return self._current().get(wanted)

    def senders(self) -> set[Sender]:
        return {sender for _key, sender in self._current().values()}

    def _current(self) -> dict[str, tuple[Ed25519PublicKey, Sender]]:
        with self._lock:
            if self._now() - self._checked_at >= LOOK_EVERY:
                self._checked_at = self._now()
                self._check_files()
            return self._keys

    def _check_files(self) -> None:
        try:
            files = _files(self._folder)
            if files != self._files:
                self._keys = _read(self._folder, files)
                self._files = files
                LOG.info("The trusted keys in %s have changed: now there are %d", self._folder, len(self._keys))
        except Misconfigured as failure:
            LOG.error("The former trusted keys stay in use: %s", failure.message)


# file -> (inode, time of modification, size): at least one of them differs after the file was written again
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
                    f"{sender} and {keys[name][1]} have the same key in {folder}. Make another key for one of them."
                )
            keys[name] = key, sender
    if not any(not sender.is_host for _key, sender in keys.values()):
        raise Misconfigured(
            f"There is no key of the control plane in {folder / CONTROL}, so this process would refuse every order."
            " Put a NAME.pem there."
        )
    return keys


def _public_keys(path: Path) -> list[Ed25519PublicKey]:
    try:
        keys = [serialization.load_pem_public_key(block) for block in _BLOCK.findall(path.read_bytes())]
    except (OSError, ValueError, UnsupportedAlgorithm) as failure:
        raise Misconfigured(f"The public key {path} can't be used: {failure}") from failure
    ours = [key for key in keys if isinstance(key, Ed25519PublicKey)]
    if not ours or len(ours) < len(keys):
        raise Misconfigured(f"The public key {path} can't be used: it is not an Ed25519 key in PEM form.")
    return ours
