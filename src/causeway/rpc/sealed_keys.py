"""Keys of volumes on their way from a conductor to a host: nobody who reads the message queue can open them.

The host makes a pair of keys for one question and sends the public one; the answer is sealed to it (X25519, HKDF, Fernet).
"""

from __future__ import annotations

import base64
import binascii

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from causeway.errors import BadRequest, GuestFailed

_PURPOSE = b"causeway: the key of a volume"
_KEY_BYTES = 32


class KeyQuestion:
    """One question of a host. ``public``: what it sends."""

    def __init__(self) -> None:
        self._private = X25519PrivateKey.generate()
        self.public = _text(self._private.public_key())

    def open(self, sealed: str) -> str:
        """Raises `GuestFailed` if the answer is not to this question."""
        try:
            there, _, content = sealed.partition(" ")
            cipher = _cipher(self._private, _public_key(there), self.public)
            return cipher.decrypt(content.encode()).decode()
        except (InvalidToken, ValueError, binascii.Error, UnsupportedAlgorithm):
            raise GuestFailed("The key of a volume came to its host damaged.") from None


def seal_to(public: str, key: str) -> str:
    """A key that only whoever asked with ``public`` can open. Raises BadRequest if that is no public key."""
    private = X25519PrivateKey.generate()
    try:
        cipher = _cipher(private, _public_key(public), public)
    except (ValueError, binascii.Error, UnsupportedAlgorithm):
        raise BadRequest("A key can't be sealed to what the host sent.") from None
    return f"{_text(private.public_key())} {cipher.encrypt(key.encode()).decode()}"


def _cipher(private: X25519PrivateKey, public: X25519PublicKey, asked_with: str) -> Fernet:
    shared = private.exchange(public)
    key = HKDF(SHA256(), _KEY_BYTES, salt=asked_with.encode(), info=_PURPOSE).derive(shared)
    return Fernet(base64.urlsafe_b64encode(key))


def _public_key(text: str) -> X25519PublicKey:
    return X25519PublicKey.from_public_bytes(base64.b64decode(text, validate=True))


def _text(key: X25519PublicKey) -> str:
    return base64.b64encode(key.public_bytes_raw()).decode()
