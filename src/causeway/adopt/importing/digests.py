"""Digests of what is imported."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec


def digest_of(content: Any) -> str:
    """SHA-256 in hexadecimal, the same for equal content in every process."""
    return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()
