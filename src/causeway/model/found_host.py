"""What is found on a host that is to be taken over from Nova. Plain data, which is also shown as JSON.

Names, paths and serial numbers are what the hypervisor and the file system say. Nobody has compared them with anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from causeway.model.states import PowerState


@dataclass
class FoundDisk:
    """A disk of a guest, as its definition has it: ``kind`` is ``file``, ``block`` or ``network``; ``device`` e.g. ``cdrom``.

    ``source``: a path, or the name of an image with that of its pool. ``size``: bytes that the guest sees. ``base``: the file
    that it stands on. ``lack``: why its size and base are not known.
    """

    target: str
    device: str = "disk"
    kind: str = "file"
    protocol: str | None = None
    source: str | None = None
    disk_format: str | None = None
    serial: str | None = None
    is_encrypted: bool = False
    size: int | None = None
    base: str | None = None
    is_base_there: bool = True
    lack: str = ""


@dataclass
class FoundInterface:
    address: str
    kind: str = ""
    device: str | None = None
    model: str | None = None


@dataclass
class FoundGuest:
    """A guest that the hypervisor knows. Memory in MiB.

    ``is_novas``: Nova's metadata are in its definition. ``pinned``: its CPU, as text (keys of JSON are) -> those of the host.
    ``starts_by_itself``: with its host. ``lack``: why nothing else is known of it.
    """

    uuid: str
    name: str
    power_state: PowerState
    is_novas: bool = False
    machine_type: str | None = None
    vcpus: int = 0
    memory_mb: int = 0
    is_persistent: bool = True
    starts_by_itself: bool = False
    has_saved_memory: bool = False
    disks: list[FoundDisk] = field(default_factory=list)
    interfaces: list[FoundInterface] = field(default_factory=list)
    pci_addresses: list[str] = field(default_factory=list)
    mediated_devices: list[str] = field(default_factory=list)
    other_host_devices: list[str] = field(default_factory=list)
    has_persistent_memory: bool = False
    has_encrypted_memory: bool = False
    shares: list[str] = field(default_factory=list)
    has_tpm: bool = False
    nvram: str | None = None
    pinned: dict[str, list[int]] = field(default_factory=dict)
    lack: str = ""


@dataclass
class FoundFile:
    name: str
    size: int
    disk_format: str | None = None


@dataclass
class FoundFolder:
    """A folder among those of guests, of a server (its uuid) or of what a resize left (the uuid and ``_resize``).

    ``noted_formats``: what Nova's ``disk.info`` says of the formats of files, by path.
    """

    name: str
    files: list[FoundFile] = field(default_factory=list)
    noted_formats: dict[str, str] = field(default_factory=dict)


@dataclass
class FoundHypervisor:
    """What a hypervisor has. ``stores``: the kinds of local disks that a compute with the same options can use.

    ``mounts``: of those below ``mount_base``, where volumes are mounted.
    """

    hostname: str = ""
    guests: list[FoundGuest] = field(default_factory=list)
    instances_path: str = ""
    folders: list[FoundFolder] = field(default_factory=list)
    mount_base: str = ""
    mounts: list[str] = field(default_factory=list)
    stores: list[str] = field(default_factory=lambda: ["qcow2"])


@dataclass
class FoundIdentity:
    """A file in which Nova keeps the host's identity. ``uuid``: None if there is none in it. ``is_held``: Causeway renamed it."""

    path: str
    uuid: str | None
    is_held: bool = False


@dataclass
class NovaProcess:
    """A nova-compute that runs on the host."""

    pid: int
    command: str


@dataclass
class FoundHost:
    """All of it. ``is_taken``: Causeway owns the host's guests."""

    host: str
    is_taken: bool = False
    identities: list[FoundIdentity] = field(default_factory=list)
    processes: list[NovaProcess] = field(default_factory=list)
    hypervisor: FoundHypervisor = field(default_factory=FoundHypervisor)
