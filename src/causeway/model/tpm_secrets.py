"""The key with which the state of a server's TPM is encrypted: in its system metadata, under Nova's names.

A server without one has a TPM whose state is not encrypted, whatever its flavor asks for: it may have been made before.
"""

from __future__ import annotations

from collections.abc import Mapping

KEY_ID, SECURITY = "vtpm_secret_uuid", "vtpm_secret_security"


def key_of(system_metadata: Mapping[str, str]) -> str | None:
    return system_metadata.get(KEY_ID) or None


def security_of(system_metadata: Mapping[str, str]) -> str | None:
    """Whose the key is; None: there is no key."""
    return system_metadata.get(SECURITY) if key_of(system_metadata) else None


def with_key(system_metadata: Mapping[str, str], key_id: str, security: str) -> dict[str, str]:
    return {**system_metadata, KEY_ID: key_id, SECURITY: security}


def without(system_metadata: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in system_metadata.items() if name not in (KEY_ID, SECURITY)}
