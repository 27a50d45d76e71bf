"""How each server moves, gentlest way first, what the move costs, and what prevents it.

- Live: the guest runs on.
- Near-live: the guest stands still while its memory travels. A plan to another cell promises this, though the move is live where
  hypervisors reach one another. A suspended guest stays suspended, and moves in no other way.
- Warm: the disks are copied while the guest runs, and it boots at the target.
- Cold: everything travels while the guest is off.
- Records: only records move, for the server is on no host. A shelved server is offloaded first.
- Evacuate: the host is dead, and the server comes up at the target from its volumes.

Costs are estimates: disks as large as flavors say, links as fast as `[drains] assumed_rate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oslo_config import cfg

from causeway.hardware.firmware import firmware_of
from causeway.model.block_device import BlockDevice, is_volume_backed
from causeway.model.drains import How
from causeway.model.flavor import Flavor
from causeway.model.host import ATTACHES_PORT_DEVICES, LIVE_MIGRATION_LACKS, STORAGE
from causeway.model.live_obstacles import DETACHED_LIVE, live_obstacle
from causeway.model.states import TaskState, VmState
from causeway.moves import reach
from causeway.moves.steps.warm import why_while_off
from causeway.store.cell.residents import Resident

_GIB, _MIB_PER_GIB = 1 << 30, 1024
# Seconds of a move that do not depend on bytes: preparing hosts, moving ports and volumes, writing records.
_ANYWAY = {How.LIVE: 5.0, How.NEAR_LIVE: 10.0, How.WARM: 15.0, How.COLD: 15.0, How.EVACUATE: 15.0}
# Seconds from a guest's shutdown to the end of its boot.
_REBOOT = 10.0
_WITH_MEMORY = (How.LIVE, How.NEAR_LIVE)
# Servers in these states have no guest to move live, so they go cold. Those in ERROR go as they are, with their disks.
_GO_COLD = (VmState.STOPPED, VmState.ERROR)
# States in which a guest stands still with its memory -> what makes it run again.
STANDING_STILL = {VmState.PAUSED: "Unpause it", VmState.SUSPENDED: "Resume it"}
# States of servers that may be on no host.
HOSTLESS = (VmState.SHELVED_OFFLOADED, VmState.ERROR)


@dataclass(frozen=True)
class Obstacle:
    """Why a server can't go, and what would help."""

    why: str
    help: str


@dataclass(frozen=True)
class Cost:
    """``bytes``: of local disks; ``mib``: everything that travels; ``seconds``: of the move if nothing else moves.

    ``beside``: the part of ``seconds`` that does not depend on bytes; ``pause``: seconds that the guest is off or stands still.
    """

    bytes: int
    mib: float
    seconds: float
    beside: float
    pause: float


_OF_STATE = {
    VmState.BUILDING: Obstacle("It is being built.", "Wait until it is there."),
    VmState.RESCUED: Obstacle("It is in rescue mode.", "End the rescue (unrescue)."),
    VmState.RESIZED: Obstacle(
        "It waits for the confirm of an earlier resize or migration.", "Confirm or revert that (VERIFY_RESIZE)."
    ),
    VmState.SOFT_DELETED: Obstacle(
        "It is deleted, and kept until its time is over (reclaim_instance_interval).",
        "A drain that runs waits for that. Delete it for good (forceDelete), or restore it.",
    ),
    VmState.DELETED: Obstacle("It is deleted.", "Wait until its record is gone."),
}


def goes_as_records(vm_state: VmState, host: str | None) -> bool:
    """Whether only the server's records move. A shelved server is offloaded first: its image has its disk anyway."""
    return vm_state is VmState.SHELVED or (host is None and vm_state in HOSTLESS)


def obstacle_here(
    server: Resident, *, how: How, resized: bool, host_is_down: bool, host_is_dead: bool, can: dict[str, Any]
) -> Obstacle | None:
    """Why a server can't leave its host, whatever the target. ``can``: capabilities of its host; ``resized``: its flavor changes.

    ``host_is_dead``: an operator has fenced it.
    """
    if server.task_state is not None:
        return Obstacle(
            f"Something is done with it at this moment ({_words(server.task_state)}).",
            "Wait for the end of that; a drain that runs looks again.",
        )
    if server.vm_state in _OF_STATE:
        return _OF_STATE[server.vm_state]
    if server.host is None and server.vm_state in HOSTLESS:
        return None
    if server.vm_state is VmState.SHELVED_OFFLOADED:
        return Obstacle(
            f"It is shelved and offloaded, and its record names host {server.host} all the same.",
            "Ask the audit about it.",
        )
    if server.host is None:
        return Obstacle("It is on no host.", "Delete it, or rebuild it.")
    if host_is_dead:
        return None if server.vm_state is VmState.SHELVED else lost_with_dead_host(server)
    if host_is_down:
        return Obstacle(
            f"Its host {server.host} is down.",
            "Start the host; if it is gone for good, say so: openstack compute service set --down"
            f" {server.host} nova-compute",
        )
    if server.vm_state is VmState.SHELVED:
        return None
    if server.vm_state in STANDING_STILL and (resized or how in (How.WARM, How.COLD)):
        return Obstacle(
            f"It is {server.vm_state.value}, and would lose its memory.",
            f"{STANDING_STILL[server.vm_state]}, or move it live or near-live.",
        )
    if how in _WITH_MEMORY and server.vm_state not in _GO_COLD:
        return why_not_live(server, can)
    return None


def lost_with_dead_host(server: Resident) -> Obstacle | None:
    """Why a server can't be evacuated from its dead host."""
    host = server.host or ""
    if firmware_of(server.flavor, server.image).tpm is not None:
        return Obstacle(
            f"Its host {host} is dead, and the state of its TPM is nowhere else.", "Start the host to keep it."
        )
    return memory_lost_with_host(host, server.vm_state) or lost_with_host(host, server.devices)


def memory_lost_with_host(host: str, vm_state: VmState) -> Obstacle | None:
    if vm_state is not VmState.SUSPENDED:
        return None
    return Obstacle(
        f"Its host {host} is dead, and the memory that it was suspended with is nowhere else.",
        "Start the host to keep it; or have an administrator reset the server's state to active: then it boots elsewhere.",
    )


def lost_with_host(host: str, devices: list[BlockDevice]) -> Obstacle | None:
    """Why a server can't be evacuated from a dead host; None if all its data is on volumes."""
    if is_volume_backed(devices):
        if not any(device.is_ephemeral for device in devices):
            return None
        disks, remedy = "ephemeral disks", "its volumes stay"
    else:
        disks, remedy = "disks", "it is made anew from its image"
    return Obstacle(
        f"Its host {host} is dead, and its {disks} are nowhere else.",
        f"Start the host to keep them; or evacuate the server inside its cell (openstack server evacuate): {remedy}, and"
        " what was on these disks is lost.",
    )


def why_not_live(server: Resident, can: dict[str, Any]) -> Obstacle | None:
    """Why a running guest can't keep its memory when it leaves its host."""
    help_ = "Move it warm or cold, or stop it."
    what = live_obstacle(server.flavor, server.image, server.vnic_types, server.vm_state)
    if what is not None:
        return Obstacle(f"Live migration is not possible for a {what}.", help_)
    if _is_kept_by_ports(server, can):
        return Obstacle(f"Its host {server.host} does not detach SR-IOV ports from a running guest.", help_)
    if not can.get("supports_live_migration") and not can.get("supports_saved_memory"):
        return Obstacle(f"Its host {server.host} can neither migrate a guest live nor save its memory.", help_)
    return None


def way(
    conf: cfg.ConfigOpts,
    server: Resident,
    *,
    how: How,
    resized: bool,
    crosses: bool,
    host_is_dead: bool,
    can: dict[str, Any],
    target_can: dict[str, Any],
) -> How | Obstacle:
    """How a server goes to a host. ``crosses``: the host is in another cell; ``target_can``: capabilities of its hypervisor."""
    if goes_as_records(server.vm_state, server.host):
        return How.RECORDS
    if host_is_dead:
        return How.EVACUATE
    if server.vm_state in _GO_COLD:
        return How.COLD
    if not resized and how in (How.GENTLEST, *_WITH_MEMORY):
        obstacle = why_not_live(server, can) or _why_not_there(server, crosses=crosses, can=can, target_can=target_can)
        if obstacle is None:
            return How.NEAR_LIVE if crosses else How.LIVE
        if how is not How.GENTLEST or server.vm_state in STANDING_STILL:
            return obstacle
    if how is How.COLD:
        return How.COLD
    why = why_while_off(conf, runs=True, host_can=bool(can.get("supports_warm_copy")))
    if why is None:
        return How.WARM
    if how is How.WARM:
        return Obstacle(f"Its disks can't be copied while it runs: {why}.", "Move it cold.")
    return How.COLD


def _why_not_there(
    server: Resident, *, crosses: bool, can: dict[str, Any], target_can: dict[str, Any]
) -> Obstacle | None:
    help_ = "Move it warm or cold, or stop it."
    if server.vm_state is VmState.SUSPENDED:
        help_ = f"{STANDING_STILL[server.vm_state]}: then it can go live or warm."
        if not crosses:
            return Obstacle("It is suspended, and its memory goes to other cells only.", help_)
        name, verb = "supports_suspended_moves", "move the memory of suspended guests"
    elif crosses:
        name, verb = "supports_saved_memory", "save and restore the memory of a guest"
    else:
        name, verb = "supports_live_migration", "migrate a guest live"
    if _is_kept_by_ports(server, target_can):
        return Obstacle("The host that it would go to does not attach SR-IOV ports to a running guest.", help_)
    for whose, known in ((f"Its host {server.host}", can), ("The host that it would go to", target_can)):
        if not known.get(name):
            return Obstacle(f"{whose} can't {verb}.", help_)
        lacks = known.get(LIVE_MIGRATION_LACKS)
        if lacks and not crosses:
            return Obstacle(f"{whose} can't {verb}: {' '.join(lacks)}", help_)
    return None


def _is_kept_by_ports(server: Resident, can: dict[str, Any]) -> bool:
    return not DETACHED_LIVE.isdisjoint(server.vnic_types) and not can.get(ATTACHES_PORT_DEVICES)


def local_gib(server: Resident, flavor: Flavor) -> int:
    """The largest size of the server's disks on its host."""
    root = 0
    if not is_volume_backed(server.devices):
        of_image = server.image.virtual_size or server.image.size if server.image is not None else 0
        root = flavor.root_gb or -(-of_image // _GIB)
    return root + flavor.ephemeral_gb + -(-flavor.swap // _MIB_PER_GIB)


def cost(server: Resident, how: How, rate: float, can: dict[str, Any], target_can: dict[str, Any]) -> Cost:
    """Estimates the cost of a move. ``rate`` in MiB a second; ``can``: capabilities of the hypervisor of the server's host.

    ``target_can``: those of its target. Disks in storage that both reach stay where they are.
    """
    if how is How.EVACUATE:
        return Cost(0, 0.0, _ANYWAY[how], _ANYWAY[how], 0.0)
    is_shared = can.get(STORAGE) is not None and can.get(STORAGE) == target_can.get(STORAGE)
    gib = 0 if is_shared else local_gib(server, server.flavor)
    disks, memory = gib * _MIB_PER_GIB, server.flavor.memory_mb
    mib = float(disks + (memory if how in _WITH_MEMORY else 0))
    runs = server.vm_state not in (*_GO_COLD, VmState.SUSPENDED)
    if how is How.LIVE:
        pause = reach.live_pause(memory, can)
    elif how is How.NEAR_LIVE and runs:
        pause = reach.longest_pause(memory)
    elif not runs:
        pause = 0.0
    else:
        pause = _REBOOT + (disks / rate if how is How.COLD else 0.0)
    beside = _ANYWAY[how] + (_REBOOT if runs and how not in _WITH_MEMORY else 0.0)
    return Cost(gib * _GIB, mib, mib / rate + beside, beside, pause)


def rate_of(conf: cfg.ConfigOpts) -> float:
    """MiB a second that a host is expected to send."""
    assumed: float = conf.drains.assumed_rate
    limit: float = conf.moves.bandwidth
    return min(assumed, limit) if limit else assumed


def _words(task: TaskState) -> str:
    return task.value.replace("_", " ")
