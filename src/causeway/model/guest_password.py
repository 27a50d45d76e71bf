"""The password that a guest posted, encrypted with its user's key, in the system metadata of its server."""

from __future__ import annotations

MOST_BYTES = 1020
_PIECE, _PIECES = 255, 4
_NAMES = tuple(f"password_{number}" for number in range(_PIECES))


def password_in(system_metadata: dict[str, str]) -> str:
    """The password; empty if there is none."""
    return "".join(system_metadata.get(name, "") for name in _NAMES)


def with_password(system_metadata: dict[str, str], password: str) -> dict[str, str]:
    """The system metadata with this password, or without one if it is empty. It is divided as in Nova."""
    found = {name: value for name, value in system_metadata.items() if name not in _NAMES}
    pieces = [password[start : start + _PIECE] for start in range(0, len(password), _PIECE)]
    return found | dict(zip(_NAMES, pieces, strict=False))
