"""How a volume is encrypted, and the key to it."""

from __future__ import annotations

from dataclasses import dataclass, field

#: the provider of the encryption of a TPM's state
SWTPM = "swtpm"


@dataclass(frozen=True)
class VolumeEncryption:
    """As the volume service says it. ``key_id``: of its key in the key manager; None: it has none."""

    provider: str
    key_id: str | None = None


@dataclass(frozen=True)
class VolumeKey:
    """The answer to a host. ``sealed``: the passphrase, sealed (`causeway.rpc.sealed_keys`)."""

    provider: str
    sealed: str = field(repr=False)


@dataclass(frozen=True)
class Passphrase:
    """A volume's, as a driver takes it. ``provider``: luks, luks2, plain, ..."""

    provider: str
    text: str = field(repr=False)
