"""What users do in a storm: one row each. Whoever adds a row has a storm that does that, too.

What an answer means at the end, by the row's ``promise``:

=========  ===============================================  =================================  ===================
promise    accepted                                         refused                            lost (5xx, no answer)
=========  ===============================================  =================================  ===================
`LIVES`    the server is there, or in ERROR with a fault    it is not there                    either
`GONE`     the server is gone, and all that was its own     it is as it was                    either
`NOTED`    its history has it: it took effect, or the       its history does not have it, or   either, not half
           history says why not and all is as it was        says that nothing came of it
`IMAGE`    as `NOTED`; the image is whole and active        as `NOTED`; there is no image      either, never half
`VALUE`    that is its value                                it has the value it had            either
`NOTHING`  nobody knows: it may have come too late
=========  ===============================================  =================================  ===================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from causeway.model.states import VmState
from tests.faults.storm import asking
from tests.faults.storm.asking import Scene
from tests.faults.storm.ledger import LIFE

LIVES, GONE, NOTED, IMAGE, VALUE, NOTHING = "lives", "gone", "noted", "image", "value", "nothing"


@dataclass(frozen=True)
class Deed:
    """``often``: its weight among what a server is fit for. ``concern``: two requests about the same one are not made at once."""

    name: str
    often: float
    fits: Callable[[Scene], bool]
    ask: Callable[[Scene, str], object]
    promise: str
    concern: str = LIFE


def _in(*states: VmState) -> Callable[[Scene], bool]:
    """Servers in these states on which nobody is known to work."""
    return lambda scene: (
        scene.seen.record is not None and not scene.seen.is_busy and scene.seen.record.vm_state in states
    )


def _and(*conditions: Callable[[Scene], bool]) -> Callable[[Scene], bool]:
    return lambda scene: all(condition(scene) for condition in conditions)


def _is_there(scene: Scene) -> bool:
    return scene.seen.record is not None and scene.ledger.may_exist


def _is_usable(scene: Scene) -> bool:
    """Or somebody works on it: who asks for something meanwhile is refused, or not."""
    states = (VmState.ACTIVE, VmState.STOPPED, VmState.RESIZED, VmState.SHELVED, VmState.SHELVED_OFFLOADED)
    return _is_there(scene) and scene.seen.record is not None and scene.seen.record.vm_state in states


def _is_gone(scene: Scene) -> bool:
    return scene.seen.record is None and not scene.seen.is_building


def _is_busy(scene: Scene) -> bool:
    return _is_there(scene) and scene.seen.is_busy


def _is_shelved(scene: Scene) -> bool:
    return _in(VmState.SHELVED, VmState.SHELVED_OFFLOADED)(scene)


def _has_local_disk(scene: Scene) -> bool:
    return not scene.ledger.on_volume


def _was_switched_off(scene: Scene) -> bool:
    """Its host died, came back, and did not start it."""
    return _in(VmState.ACTIVE)(scene) and scene.seen.power_is_off and not scene.seen.is_on_dead_host


def _is_on_dead_host(scene: Scene) -> bool:
    return _in(VmState.ACTIVE, VmState.STOPPED, VmState.ERROR)(scene) and scene.seen.is_on_dead_host


def _is_unwritten(scene: Scene) -> bool:
    return _in(VmState.ACTIVE)(scene) and scene.ledger.mark is None and not scene.seen.power_is_off


_ACTIVE, _RESIZED, _STOPPED = _in(VmState.ACTIVE), _in(VmState.RESIZED), _in(VmState.STOPPED)
_REBUILDABLE = _in(VmState.ACTIVE, VmState.STOPPED, VmState.ERROR)

DEEDS = (
    #    name             often  servers that fit                  how it is asked for                        promise
    Deed("create", 10.0, _is_gone, asking.create, LIVES),
    Deed("delete", 0.01, _is_there, asking.delete, GONE),
    Deed("throw away", 3.0, _in(VmState.ERROR), asking.delete, GONE),
    Deed("resize", 4.0, _ACTIVE, asking.resize, NOTED),
    Deed("migrate", 1.0, _ACTIVE, asking.as_administrator("migrate"), NOTED),
    Deed("migrate live", 2.0, _ACTIVE, asking.migrate_live, NOTED),
    Deed("confirm", 4.0, _RESIZED, asking.plainly("confirmResize"), NOTED),
    Deed("revert", 2.0, _RESIZED, asking.plainly("revertResize"), NOTED),
    Deed("cancel", 0.05, _is_busy, asking.cancel, NOTHING),
    Deed("shelve", 2.0, _ACTIVE, asking.plainly("shelve"), NOTED),
    Deed("offload", 2.0, _in(VmState.SHELVED), asking.as_administrator("shelveOffload"), NOTED),
    Deed("unshelve", 2.0, _is_shelved, asking.plainly("unshelve"), NOTED),
    Deed("rebuild", 0.5, _REBUILDABLE, asking.rebuild, NOTED),
    Deed("evacuate", 20.0, _is_on_dead_host, asking.evacuate, NOTED),
    Deed("start", 8.0, _STOPPED, asking.plainly("os-start"), NOTHING),
    Deed("reboot", 8.0, _was_switched_off, asking.reboot, NOTHING),
    Deed("image", 0.8, _and(_ACTIVE, _has_local_disk), asking.create_image, IMAGE),
    Deed("backup", 0.8, _and(_ACTIVE, _has_local_disk), asking.create_backup, IMAGE),
    Deed("write", 10.0, _is_unwritten, asking.write, NOTHING),
    Deed("name", 1.5, _is_usable, asking.rename, VALUE, "name"),
    Deed("metadata", 1.5, _is_usable, asking.metadata, VALUE, "metadata"),
    Deed("tag", 1.5, _is_usable, asking.tag, VALUE, "tag"),
    Deed("volume", 2.0, _is_usable, asking.volume, VALUE, "volume"),
    Deed("port", 2.0, _is_usable, asking.port, VALUE, "port"),
    Deed("network", 0.7, _is_usable, asking.network, VALUE, "network"),
)
BY_NAME = {deed.name: deed for deed in DEEDS}
