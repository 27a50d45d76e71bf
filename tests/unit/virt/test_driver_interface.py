"""The driver interface: what its first page lists as required is abstract, and what is optional answers by itself."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from causeway.errors import CausewayError, ClaimRefused
from causeway.virt import driver as interface
from causeway.virt.driver import Driver
from causeway.virt.driver.support import unsupported

FREE = {
    # These answer that there is nothing, or do nothing.
    "confine",
    "delete_rescue_disk",
    "delete_stored_image",
    "detach_volume",
    "discard_copy",
    "discard_temporary_files",
    "disk_bytes",
    "end_rounds",
    "guest_name",
    "has_copy",
    "has_rescue_disk",
    "has_round",
    "host_hardware",
    "is_rescued",
    "limit_live_migration",
    "list_storage",
    "list_temporary_files",
    "live_arrival",
    "live_migration_certificates",
    "live_migration_lacks",
    "machine_type",
    "own_folders",
    "port_devices",
    "reaches_disks",
    "saved_memory",
    "set_clock",
    "settle_disks",
    "shared_disks",
    "storage",
    "store_image",
    "stored_image",
    "stores_images",
    "take_over_disks",
}


def optional_methods() -> list[str]:
    names = [name for name, _method in inspect.getmembers(Driver, inspect.isfunction) if not name.startswith("_")]
    return [name for name in names if name not in Driver.__abstractmethods__]


def bare() -> Any:
    """A driver that has the required methods, and can't be asked for any of them."""
    return type("Bare", (Driver,), dict.fromkeys(Driver.__abstractmethods__))()


def test_the_first_page_lists_what_is_required() -> None:
    page = interface.__doc__ or ""
    table = re.split(r"(?m)^=+ .*$", page)[2]
    # The second column, and the lines that continue it.
    listed = {name for line in table.splitlines() for name in re.findall(r"[a-z_]+", line[20:85])}
    assert listed == set(Driver.__abstractmethods__)


@pytest.mark.parametrize("name", optional_methods())
def test_an_optional_method_answers_or_says_that_it_is_not_supported(name: str) -> None:
    method = getattr(bare(), name)
    arguments: list[Any] = []
    named: dict[str, Any] = {}
    for parameter in inspect.signature(method).parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            named[parameter.name] = None
        else:
            path = Path(interface.ROOT_DISK) if parameter.annotation == "Path" else interface.ROOT_DISK
            arguments.append(path if name != "console_listener" else _Kind())
    if name in FREE:
        method(*arguments, **named)
        return
    with pytest.raises(CausewayError, match=r"The hypervisor.* (can't|has no) ") as caught:
        method(*arguments, **named)
    # A refused claim is no answer to a user: another host is tried.
    assert caught.value.status in (400, 501) or isinstance(caught.value, ClaimRefused)


class _Kind:
    value = "serial"


def test_a_driver_that_connects_volumes_must_say_how_it_detaches_them() -> None:
    connecting = type("Connecting", (type(bare()),), {"volume_connector": lambda _self: {}})()
    with pytest.raises(CausewayError, match="can't detach volumes"):
        connecting.detach_volume("uuid", None)


def test_the_error_says_what_can_not_be_done() -> None:
    failure = unsupported("pause guests")
    assert (failure.status, failure.message) == (
        501,
        "The hypervisor can't pause guests: the driver of this host does not support it.",
    )
