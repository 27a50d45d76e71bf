"""What Cinder has and devcloud never has any of: groups, QoS specs, backups."""

from collections.abc import Iterator

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import not_found
from causeway.devcloud.web import Call, Handler, Route

# path: (the list's key, what one of them is called, whether it is listed at /detail too)
FAMILIES = {
    "/groups": ("groups", "Group", True),
    "/group_types": ("group_types", "Group Type", False),
    "/group_snapshots": ("group_snapshots", "GroupSnapshot", True),
    "/qos-specs": ("qos_specs", "QoS specs", False),
    "/backups": ("backups", "Backup", True),
    "/messages": ("messages", "Message", False),
}


def routes() -> Iterator[Route]:
    for path, (key, name, detailed) in FAMILIES.items():
        yield Route("GET", path, _lister(key))
        if detailed:
            yield Route("GET", path + "/detail", _lister(key))
        yield Route("GET", path + "/{row_id}", _shower(name))


def _lister(key: str) -> Handler:
    def list_none(_call: Call, **_: str) -> Json:
        return {key: []}

    return list_none


def _shower(name: str) -> Handler:
    def show_none(_call: Call, row_id: str, **_: str) -> Json:
        raise not_found(f"{name} {row_id} could not be found.")

    return show_none
