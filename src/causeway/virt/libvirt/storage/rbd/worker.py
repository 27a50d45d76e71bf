"""A process that talks to Ceph for a compute: ``python -m causeway.virt.libvirt.storage.rbd.worker ACCESS``.

``ACCESS`` is an `Access` in JSON. It answers calls from its standard input on its standard output (`protocol`), one at a time,
and ends with its parent, even in the middle of a call that does not return.
"""

from __future__ import annotations

import errno
import os
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO, assert_never

import msgspec

from causeway.virt.libvirt.storage.rbd import protocol
from causeway.virt.libvirt.storage.rbd.bindings import BoundPool, Missing
from causeway.virt.libvirt.storage.rbd.programs import ProgramPool
from causeway.virt.libvirt.storage.rbd.protocol import Refused

# After these a client of Ceph is not used any more: it may be blocklisted, or have lost its way.
_LOST = frozenset((errno.ESHUTDOWN, errno.ETIMEDOUT, errno.ENOTCONN))
Pool = BoundPool | ProgramPool


def main() -> None:
    # Its end is the end of this group.
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    access = msgspec.json.decode(sys.argv[1], type=protocol.Access)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever a library prints must not be taken for an answer.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    calls: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, calls), daemon=True).start()
    try:
        pool = _reach(access)
    except Refused as refused:
        _write(answers, protocol.Answer(failed=protocol.Failed(refused.number, str(refused))))
        _end()
    else:
        ready = msgspec.json.encode(protocol.Ready(pool.fsid, pool.by))
        _write(answers, protocol.Answer(msgspec.Raw(ready)))
        _serve(pool, calls, answers)


def _serve(pool: Pool, calls: queue.SimpleQueue[bytes], answers: BinaryIO) -> None:
    decoder = msgspec.json.Decoder(protocol.Call)
    while True:
        call = decoder.decode(calls.get())
        try:
            _write(answers, protocol.Answer(msgspec.Raw(msgspec.json.encode(perform(pool, call)))))
        except Refused as refused:
            _write(answers, protocol.Answer(failed=protocol.Failed(refused.number, str(refused))))
            if refused.number in _LOST:
                _end()


def perform(pool: Pool, call: protocol.Call) -> Any:
    """Does what a call asks for, and returns what it answers."""
    match call:
        case protocol.Describe():
            return pool.describe(call.name)
        case protocol.Read():
            return pool.read(call.image, call.most)
        case protocol.Names():
            return pool.names()
        case protocol.Changes():
            return pool.changes(call.name, call.since, call.until)
        case protocol.SetMetadata():
            return pool.set_metadata(call.name, call.key, call.value)
        case protocol.MakeSnapshot():
            return pool.make_snapshot(call.name, call.snapshot, protected=call.protected)
        case protocol.DeleteSnapshot():
            return pool.delete_snapshot(call.name, call.snapshot)
        case protocol.RollBack():
            return pool.roll_back(call.name, call.snapshot)
        case protocol.Rename():
            return pool.rename(call.name, call.to)
        case protocol.Remove():
            return pool.remove(call.name)
        case protocol.MoveToTrash():
            return pool.move_to_trash(call.name)
        case protocol.Create():
            return pool.create(call.name, call.size)
        case protocol.Clone():
            return pool.clone(call.parent, call.name)
        case protocol.Grow():
            return pool.grow(call.name, call.size)
        case protocol.Flatten():
            return pool.flatten(call.name)
        case protocol.Blocklist():
            return pool.blocklist(call.addresses, call.seconds)
        case protocol.Use():
            return pool.use()
        case protocol.Monitors():
            return pool.monitors()
        case _:
            assert_never(call)


def _reach(access: protocol.Access) -> Pool:
    try:
        with Path(access.conf).open("rb") as file:
            file.read(1)
    except OSError as error:
        raise Refused(error.errno or errno.EIO, f"{access.conf}: {error.strerror}") from None
    if not access.programs:
        try:
            return BoundPool(access)
        except Missing:
            pass
    return ProgramPool(access)


def _read(source: BinaryIO, calls: queue.SimpleQueue[bytes]) -> None:
    for line in source:
        calls.put(line)
    # The parent is gone.
    _end()


def _write(answers: BinaryIO, answer: protocol.Answer) -> None:
    answers.write(msgspec.json.encode(answer) + b"\n")
    answers.flush()


def _end() -> None:
    """Ends this process and the programs that it has started. It does not say goodbye to a Ceph that does not answer."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


if __name__ == "__main__":
    main()
