"""What a compute asks a worker of RBD, and what it answers: a line of JSON each, one call at a time.

Every call may be repeated by whoever did not get the answer: a number says what Ceph refused (`errno`), and the caller knows
what that means for a second time.
"""

from __future__ import annotations

import msgspec


class Refused(Exception):
    """Ceph answered, and refused. ``number``: its errno; 0: none."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(text)
        self.number = number


class Access(msgspec.Struct, frozen=True):
    """How a worker reaches a pool. ``user``: without ``client.``. The timeouts are Ceph's own, in whole seconds.

    ``programs``: use the programs ``rbd`` and ``ceph``, even if there are bindings.
    """

    conf: str
    user: str
    pool: str
    connect_timeout: int
    request_timeout: int
    programs: bool = False


class Ready(msgspec.Struct, frozen=True):
    """The first line of a worker that has reached the pool. ``by``: bindings or programs."""

    fsid: str
    by: str


class Image(msgspec.Struct, frozen=True):
    """``id``: stays when the image is renamed. ``watchers``: who has it open for writing (``ADDRESS:PORT/NONCE``).

    ``kept``: how many snapshots were deleted, and are kept since images stand on them.
    """

    id: str
    size: int
    metadata: dict[str, str]
    snapshots: list[str]
    kept: int
    watchers: list[str]
    parent: Parent | None


class Parent(msgspec.Struct, frozen=True):
    """The snapshot that an image stands on."""

    pool: str
    image: str
    snapshot: str


class Beginning(msgspec.Struct, frozen=True):
    """``size``: bytes of what a snapshot keeps. ``content``: the first of them."""

    size: int
    content: bytes


class Usage(msgspec.Struct, frozen=True):
    """Bytes of a pool, as its clients see them: copies are not counted."""

    used: int
    total: int


class Describe(msgspec.Struct, frozen=True, tag=True):
    """Answers an `Image`. Opens it for reading only, so the worker is no watcher itself."""

    name: str


class Read(msgspec.Struct, frozen=True, tag=True):
    """Answers the `Beginning` of a snapshot, which may be in another pool. ``most``: bytes."""

    image: Parent
    most: int


class Names(msgspec.Struct, frozen=True, tag=True):
    """Answers the names of all images."""


class Changes(msgspec.Struct, frozen=True, tag=True):
    """Answers (offset, length) of what an image has written or discarded between two snapshots, in whole blocks.

    ``since`` None: of all that it has, with what it stands on. ``until`` None: until now, and nobody writes to it.
    """

    name: str
    since: str | None
    until: str | None


class SetMetadata(msgspec.Struct, frozen=True, tag=True):
    name: str
    key: str
    value: str


class MakeSnapshot(msgspec.Struct, frozen=True, tag=True):
    """``protected``: nobody can delete it by mistake, and images can stand on it whatever the cluster's age."""

    name: str
    snapshot: str
    protected: bool = False


class DeleteSnapshot(msgspec.Struct, frozen=True, tag=True):
    name: str
    snapshot: str


class RollBack(msgspec.Struct, frozen=True, tag=True):
    name: str
    snapshot: str


class Rename(msgspec.Struct, frozen=True, tag=True):
    name: str
    to: str


class Remove(msgspec.Struct, frozen=True, tag=True):
    name: str


class MoveToTrash(msgspec.Struct, frozen=True, tag=True):
    name: str


class Create(msgspec.Struct, frozen=True, tag=True):
    name: str
    size: int


class Clone(msgspec.Struct, frozen=True, tag=True):
    parent: Parent
    name: str


class Grow(msgspec.Struct, frozen=True, tag=True):
    """An image that is as large, or larger, stays."""

    name: str
    size: int


class Flatten(msgspec.Struct, frozen=True, tag=True):
    name: str


class Blocklist(msgspec.Struct, frozen=True, tag=True):
    """Returns when the worker has a map of the cluster with these. Whatever it writes afterwards brings that map with it."""

    addresses: list[str]
    seconds: float


class Use(msgspec.Struct, frozen=True, tag=True):
    """Answers the pool's `Usage`."""


class Monitors(msgspec.Struct, frozen=True, tag=True):
    """Answers where the monitors of now listen, as ``ADDRESS:PORT`` (of IPv6 ``[ADDRESS]:PORT``)."""


Call = (
    Describe
    | Read
    | Names
    | Changes
    | SetMetadata
    | MakeSnapshot
    | DeleteSnapshot
    | RollBack
    | Rename
    | Remove
    | MoveToTrash
    | Create
    | Clone
    | Grow
    | Flatten
    | Blocklist
    | Use
    | Monitors
)


class Failed(msgspec.Struct, frozen=True):
    """``number``: Ceph's errno; 0: none. ``text``: for administrators."""

    number: int
    text: str


class Answer(msgspec.Struct, frozen=True):
    """``failed``: None if it was done."""

    done: msgspec.Raw = msgspec.Raw(b"null")
    failed: Failed | None = None
