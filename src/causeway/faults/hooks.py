"""Installs the points of calls to the services around, RPC and hypervisor drivers. The code of moves and computes has its own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from oslo_config import cfg

from causeway import errors
from causeway.clients.session import calls
from causeway.faults import injector
from causeway.rpc.transport import Outgoing, Transports, Verdict
from causeway.virt.driver import Driver

# The driver's methods that change something on a host for a move or an operation. The others are in a table of the test that
# compares this one with the interface (`tests/unit/faults/test_every_hook.py`).
DRIVER_METHODS = (
    "abort_live_migration",
    "adopt_disks",
    "attach_interface",
    "attach_volume",
    "begin_round",
    "copy_volume",
    "define_suspended",
    "delete_disks",
    "delete_rescue_disk",
    "delete_stashed_disks",
    "delete_stored_image",
    "destroy",
    "detach_interface",
    "detach_volume",
    "discard_copy",
    "end_round",
    "end_rounds",
    "end_volume_swap",
    "export_disk",
    "export_kept_state",
    "export_running_disk",
    "force_live_migration",
    "limit_writes",
    "live_migrate",
    "merge_volume_files",
    "open_changes",
    "open_copy",
    "power_off",
    "power_on",
    "prepare_live_target",
    "prepare_rescue",
    "reboot",
    "restore_stashed_disks",
    "settle_disks",
    "resume_woken",
    "save_memory",
    "snapshot_volume",
    "spawn",
    "stash_disks",
    "store_image",
    "switch_volume",
    "take_over_disks",
    "wake",
)


def install(conf: cfg.ConfigOpts, transports: Transports) -> None:
    """Switches fault injection on if the configuration says so."""
    if not conf.fault_injection.enabled:
        return
    injector.install(Path(conf.fault_injection.file))
    calls.before = lambda key: _call(f"call.{key}.request", key)
    calls.after = lambda key: _call(f"call.{key}.reply", key)
    transports.on_send = lambda message: _message(message, "request", Verdict.LOSE_REQUEST)
    transports.on_reply = lambda message: _message(message, "reply", Verdict.LOSE_REPLY)


def uninstall(conf: cfg.ConfigOpts) -> None:
    if conf.fault_injection.enabled:
        calls.before = calls.after = None
        injector.uninstall()


def _call(point: str, key: str) -> None:
    failure = injector.fails(point)
    if failure is None:
        return
    service = key.split(" ", 1)[0]
    if failure == "refuse":
        raise errors.ServiceRefused(f"The {service} service refused.", details=f"point {point}")
    raise errors.ServiceFailed(f"The {service} service did not answer. Try again later.", details=f"point {point}")


def _message(message: Outgoing, side: str, lost: Verdict) -> Verdict:
    return lost if injector.fails(f"rpc.{message.topic}.{message.method}.{side}") else Verdict.DELIVER


def watch_driver(driver: Driver, host: str) -> Driver:
    """Adds a point before and after each of the driver's methods that change something, if fault injection is on; returns it."""
    if injector.is_active():
        for name in DRIVER_METHODS:
            setattr(driver, name, _watched(getattr(driver, name), name, host))
    return driver


def _watched(work: Callable[..., Any], name: str, host: str) -> Callable[..., Any]:
    @functools.wraps(work)
    def watched(*arguments: Any, **named: Any) -> Any:
        with injector.scope(host=host):
            injector.reach(f"driver.{name}.before")
            result = work(*arguments, **named)
            if isinstance(result, AbstractContextManager):
                return _watched_context(result, name, host)
            _after(name)
            return result

    return watched


@contextmanager
def _watched_context(context: AbstractContextManager[Any], name: str, host: str) -> Any:
    with injector.scope(host=host), context as value:
        _after(name)
        yield value


def _after(name: str) -> None:
    injector.reach(f"driver.{name}.after")
    method = injector.method()
    if method is not None:
        injector.reach(f"compute.{method}.in")
