"""Passwords, stored as salted scrypt hashes. The work factor is small, since these accounts protect a development cloud."""

import hashlib
import hmac
import secrets


def hash_password(password: str) -> str:
    salt = secrets.token_bytes(16)
    return f"{salt.hex()}${_derive(password, salt).hex()}"


def check_password(password: str, stored: str | None) -> bool:
    if not stored:
        return False
    salt, _, digest = stored.partition("$")
    return hmac.compare_digest(_derive(password, bytes.fromhex(salt)), bytes.fromhex(digest))


def _derive(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=1 << 10, r=8, p=1)
