"""The query parameters of a list of servers, as conditions. Source: Compute API reference, "List Servers"."""

from __future__ import annotations

from collections.abc import Callable

from causeway import errors
from causeway.api import changes
from causeway.api.request import ApiRequest
from causeway.api.schemas.common import BOOLEAN_WORDS, MAX_TAGS, to_bool
from causeway.api.validation import parse_time
from causeway.model.states import ServerStatus
from causeway.store.conditions import (
    Between,
    ChangedBefore,
    ChangedSince,
    Condition,
    Deleted,
    HasStatus,
    HasTags,
    Matches,
    OneOf,
    has_address,
)
from causeway.store.listing import NEWEST_FIRST, SortKey
from causeway.store.patterns import InvalidPattern, compile_pattern

ALL_FILTERS = "os_compute_api:servers:allow_all_filters"
# Filters for everybody -> their first minor version. Others are ignored unless policy allows all filters.
_FOR_ALL: dict[str, int] = {
    "reservation_id": 1, "name": 1, "status": 1, "image": 1, "flavor": 1, "ip": 1, "changes-since": 1, "all_tenants": 1,
    "ip6": 5, "tags": 26, "tags-any": 26, "not-tags": 26, "not-tags-any": 26, "changes-before": 66, "locked": 73,
    "availability_zone": 83, "config_drive": 83, "key_name": 83, "created_at": 83, "launched_at": 83, "terminated_at": 83,
    "power_state": 83, "task_state": 83, "vm_state": 83, "progress": 83, "user_id": 83,
}  # fmt: skip
_PAGING = frozenset({"limit", "marker", "sort_key", "sort_dir"})
_EXACT = {
    "image": "image_ref", "flavor": "flavorid", "vm_state": "vm_state", "user_id": "user_id", "project_id": "project_id",
    "tenant_id": "project_id", "host": "host", "uuid": "uuid",
}  # fmt: skip
_PATTERNS = {"name": "display_name", "description": "display_description"} | {
    column: column
    for column in (
        "display_name", "display_description", "hostname", "reservation_id", "availability_zone", "key_name", "node",
        "kernel_id", "ramdisk_id", "root_device_name", "locked_by", "access_ip_v4", "access_ip_v6",
    )
}  # fmt: skip
_NUMBERS = {"power_state": "power_state", "progress": "progress", "launch_index": "launch_index"}
_FLAGS = {"config_drive": "config_drive", "auto_disk_config": "auto_disk_config", "locked": "locked"}
_TIMES = {"created_at": "created_at", "launched_at": "launched_at", "terminated_at": "terminated_at"}

# Internal fields, which a list can't be searched for.
INTERNAL_FILTERS = (
    "block_device_mapping", "services", "metadata", "system_metadata", "info_cache", "security_groups", "pci_devices",
)  # fmt: skip

SORT_KEYS = {
    "access_ip_v4": "access_ip_v4", "access_ip_v6": "access_ip_v6", "auto_disk_config": "auto_disk_config",
    "availability_zone": "availability_zone", "config_drive": "config_drive", "created_at": "created_at",
    "display_description": "display_description", "display_name": "display_name", "host": "host", "hostname": "hostname",
    "image_ref": "image_ref", "instance_type_id": "flavorid", "kernel_id": "kernel_id", "key_name": "key_name",
    "launch_index": "launch_index", "launched_at": "launched_at", "locked_by": "locked_by", "node": "node",
    "power_state": "power_state", "progress": "progress", "project_id": "project_id", "ramdisk_id": "ramdisk_id",
    "root_device_name": "root_device_name", "task_state": "task_state", "terminated_at": "terminated_at",
    "updated_at": "updated_at", "user_id": "user_id", "uuid": "uuid", "vm_state": "vm_state", "locked": "locked",
}  # fmt: skip
# Accepted until 2.74, without an effect. ``locked`` has one from 2.73 on.
IGNORED_SORT_KEYS = frozenset({
    "architecture", "cell_name", "cleaned", "default_ephemeral_device", "default_swap_device", "deleted", "deleted_at",
    "disable_terminate", "ephemeral_gb", "ephemeral_key_uuid", "id", "key_data", "launched_on", "memory_mb", "os_type",
    "reservation_id", "root_gb", "shutdown_terminate", "user_data", "vcpus", "vm_mode",
})  # fmt: skip
_FIRST_WITH_LOCKED = 73
_OF_ADMINISTRATORS = ("host", "node")


def wanted(request: ApiRequest) -> dict[str, str]:
    """The filters that this caller may use; others are ignored. Raises BadRequest for internal fields."""
    given = {name: values[-1] for name, values in request.query.items() if values and name not in _PAGING}
    for name in given:
        if name in INTERNAL_FILTERS or name.startswith("_"):
            raise errors.BadRequest(f"Invalid filter field: {name}.")
    if request.allows(ALL_FILTERS):
        return given
    minor = request.version.minor
    return {name: value for name, value in given.items() if _FOR_ALL.get(name, minor + 1) <= minor}


def is_plain(request: ApiRequest) -> bool:
    """Whether there are no parameters but all_tenants: only then can the servers of down cells be listed (2.69)."""
    return not set(request.query) - {"all_tenants"}


def asks_all_tenants(filters: dict[str, str]) -> bool:
    text = filters.get("all_tenants")
    if text is None:
        return False
    if text == "":
        return True
    if text.lower() not in BOOLEAN_WORDS:
        raise errors.BadRequest(
            f"Unrecognized value '{text}', acceptable values are: {', '.join(sorted(BOOLEAN_WORDS))}"
        )
    return to_bool(text)


def _sorting(request: ApiRequest) -> tuple[list[str], list[str]]:
    """What to sort by, and the directions, without keys that have no effect and their directions."""
    names, directions = list(request.query.get("sort_key", [])), list(request.query.get("sort_dir", []))
    for place in reversed(range(len(names))):
        name = names[place]
        if name in IGNORED_SORT_KEYS or (name == "locked" and request.version.minor < _FIRST_WITH_LOCKED):
            del names[place], directions[place : place + 1]
        elif name in _OF_ADMINISTRATORS and not request.context.is_admin:
            raise errors.Forbidden(f"Only administrators can sort servers by {name}")
    return names, directions


def sort_keys(request: ApiRequest) -> tuple[SortKey, ...]:
    """From ``sort_key`` and ``sort_dir``. Keys without a direction have the first one, or are descending if there is none."""
    names, directions = _sorting(request)
    if not names:
        descending = not directions or directions[0] == "desc"
        return (SortKey("created_at", descending),) if directions else NEWEST_FIRST
    if len(directions) > len(names):
        raise errors.BadRequest("Sort direction size exceeds sort key size")
    keys: dict[str, SortKey] = {}
    for place, name in enumerate(names):
        if place < len(directions):
            direction = directions[place]
        else:
            direction = directions[0] if directions else "desc"
        column = SORT_KEYS[name]
        if column == "uuid":
            # Uuids are unique, so later keys have no effect.
            keys.setdefault(column, SortKey(column, direction == "desc"))
            break
        keys.setdefault(column, SortKey(column, direction == "desc"))
    return tuple(keys.values())


def conditions(request: ApiRequest, filters: dict[str, str]) -> list[Condition] | None:
    """What the filters ask for; None if no server can fit."""
    found: list[Condition] = []
    for name, make in _MAKERS.items():
        if name in filters:
            condition = make(name, filters[name])
            found.append(condition)
    changed = _changes(filters)
    found += changed
    statuses = _statuses(request, filters)
    if statuses is not None:
        if not statuses:
            return None
        found.append(HasStatus(statuses))
    deleted = _deleted(request, filters, statuses, bool(changed))
    return found if deleted is None else [*found, deleted]


def _statuses(request: ApiRequest, filters: dict[str, str]) -> tuple[ServerStatus, ...] | None:
    if "status" not in filters:
        return None
    known = {status.value.lower(): status for status in ServerStatus}
    asked = [value.lower() for value in request.query["status"]]
    unknown = [value for value in asked if value not in known]
    if unknown and request.version >= (2, 38):
        raise errors.BadRequest(f"Invalid status value: {unknown[0]}")
    statuses = tuple(known[value] for value in asked if value in known)
    if ServerStatus.DELETED in statuses and not request.context.is_admin:
        raise errors.Forbidden("Only administrators may list deleted instances")
    return statuses


def _deleted(
    request: ApiRequest, filters: dict[str, str], statuses: tuple[ServerStatus, ...] | None, changed: bool
) -> Deleted | None:
    text = filters.get("deleted")
    if text is not None and request.context.is_admin:
        if text != "" and text.lower() not in BOOLEAN_WORDS:
            raise errors.BadRequest(f"Invalid value for the filter deleted: {text}")
        return Deleted(text == "" or to_bool(text))
    if statuses is not None and ServerStatus.DELETED in statuses:
        return Deleted(True) if len(statuses) == 1 else None
    return None if changed else Deleted(False)


def _changes(filters: dict[str, str]) -> list[Condition]:
    since, before = changes.window(filters.get("changes-since"), filters.get("changes-before"))
    found: list[Condition] = []
    if since is not None:
        found.append(ChangedSince(since))
    if before is not None:
        found.append(ChangedBefore(before))
    return found


def _in_second(name: str, text: str, column: str) -> Condition:
    """Whether a time is in a given second: users see seconds, the databases keep microseconds."""
    moment = parse_time(text)
    if moment is None:
        raise errors.BadRequest(f"Invalid value for {name}: {text} is not a time.")
    return Between(column, *changes.second_of(moment))


def _pattern(name: str, text: str) -> str:
    try:
        compile_pattern(text)
    except InvalidPattern as error:
        raise errors.BadRequest(
            f"Invalid value for the filter {name}: {text} is not a regular expression: {error}"
        ) from None
    return text


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise errors.BadRequest(f"Invalid value for the filter {name}: {text} is not a number.")
    return int(text)


def _flag(name: str, text: str) -> bool:
    if text.lower() not in BOOLEAN_WORDS:
        raise errors.BadRequest(f"Invalid value for the filter {name}: {text} is neither true nor false.")
    return to_bool(text)


def _tags(text: str) -> tuple[str, ...]:
    return tuple(sorted({tag for tag in text.split(",") if tag}))


def _all_tags(text: str) -> tuple[str, ...]:
    """The tags that a server must all have. Cut at one more than a server can have, which no server matches."""
    return _tags(text)[: MAX_TAGS + 1]


def _task_state(_name: str, text: str) -> Condition:
    return OneOf("task_state", (None,) if text.lower() in ("", "none", "null") else (text,))


def _makers() -> dict[str, Callable[[str, str], Condition]]:
    makers: dict[str, Callable[[str, str], Condition]] = {}
    makers |= {name: lambda _n, text, c=column: OneOf(c, (text,)) for name, column in _EXACT.items()}  # type: ignore[misc]
    makers |= {name: lambda n, text, c=column: Matches(c, _pattern(n, text)) for name, column in _PATTERNS.items()}  # type: ignore[misc]
    makers |= {name: lambda n, text, c=column: OneOf(c, (_number(n, text),)) for name, column in _NUMBERS.items()}  # type: ignore[misc]
    makers |= {name: lambda n, text, c=column: OneOf(c, (_flag(n, text),)) for name, column in _FLAGS.items()}  # type: ignore[misc]
    makers |= {name: lambda n, text, c=column: _in_second(n, text, c) for name, column in _TIMES.items()}  # type: ignore[misc]
    makers["task_state"] = _task_state
    makers["ip"] = lambda name, text: has_address(_pattern(name, text), 4)
    makers["ip6"] = lambda name, text: has_address(_pattern(name, text), 6)
    makers["tags"] = lambda _name, text: HasTags(_all_tags(text), all_of=True)
    makers["tags-any"] = lambda _name, text: HasTags(_tags(text), all_of=False)
    makers["not-tags"] = lambda _name, text: HasTags(_all_tags(text), all_of=True, negated=True)
    makers["not-tags-any"] = lambda _name, text: HasTags(_tags(text), all_of=False, negated=True)
    return makers


_MAKERS = _makers()
