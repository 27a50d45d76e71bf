"""All routes of servers."""

from __future__ import annotations

from causeway.api.dispatch import Route
from causeway.api.request import Handler
from causeway.api.servers import candidates, delete, listing, show, update
from causeway.api.servers.actions import (
    admin,
    consoles,
    evacuate,
    fixed_ips,
    guest_states,
    images,
    inside,
    live_migration,
    power,
    rebuild,
    rescue,
    resize,
    shelve,
)
from causeway.api.servers.creating import create
from causeway.api.servers.subresources import (
    addresses,
    history,
    interfaces,
    metadata,
    security_groups,
    shares,
    tags,
    topology,
    volumes,
)

_SERVER = "/servers/{server_id}"
_METADATA = _SERVER + "/metadata"
_TAGS = _SERVER + "/tags"
_VOLUMES = _SERVER + "/os-volume_attachments"
_PORTS = _SERVER + "/os-interface"


def _action(name: str, handler: Handler, first: int = 1, last: int | None = None) -> Route:
    return Route("POST", _SERVER + "/action", handler, first, last, action=name)


ROUTES: list[Route] = [
    Route("GET", "/servers", listing.index),
    Route("POST", "/servers", create.create),
    Route("GET", "/servers/detail", listing.detail),
    Route("GET", _SERVER, show.show),
    Route("PUT", _SERVER, update.update),
    Route("DELETE", _SERVER, delete.delete),
    # Ours: where could it be moved to?
    Route("GET", "/os-causeway" + _SERVER + "/move-candidates", candidates.index),
    # Actions
    _action("resize", resize.resize),
    _action("migrate", resize.migrate),
    _action("os-migrateLive", live_migration.migrate),
    _action("confirmResize", resize.confirm),
    _action("revertResize", resize.revert),
    _action("os-start", power.start),
    _action("os-stop", power.stop),
    _action("reboot", power.reboot),
    _action("pause", guest_states.pause),
    _action("unpause", guest_states.unpause),
    _action("suspend", guest_states.suspend),
    _action("resume", guest_states.resume),
    _action("rebuild", rebuild.rebuild),
    _action("rescue", rescue.rescue),
    _action("unrescue", rescue.unrescue),
    _action("evacuate", evacuate.evacuate),
    _action("shelve", shelve.shelve),
    _action("shelveOffload", shelve.offload),
    _action("unshelve", shelve.unshelve),
    _action("createImage", images.create_image),
    _action("createBackup", images.create_backup),
    _action("trigger_crash_dump", inside.trigger_crash_dump, 17),
    _action("changePassword", inside.change_password),
    # Ours
    _action("os-guestTrim", inside.trim),
    _action("lock", admin.lock),
    _action("unlock", admin.unlock),
    _action("os-resetState", admin.reset_state),
    _action("os-getConsoleOutput", admin.console_output),
    _action("forceDelete", delete.force_delete),
    _action("restore", delete.restore),
    _action("injectNetworkInfo", admin.inject_network_info),
    _action("addSecurityGroup", security_groups.add),
    _action("removeSecurityGroup", security_groups.remove),
    _action("addFixedIp", fixed_ips.add, 1, 43),
    _action("removeFixedIp", fixed_ips.remove, 1, 43),
    _action("os-getVNCConsole", consoles.by_action("os-getVNCConsole", "vnc", "novnc", "xvpvnc"), 1, 5),
    _action("os-getSPICEConsole", consoles.by_action("os-getSPICEConsole", "spice", "spice-html5"), 1, 5),
    _action("os-getSerialConsole", consoles.by_action("os-getSerialConsole", "serial", "serial"), 1, 5),
    # What belongs to a server
    Route("GET", _METADATA, metadata.index),
    Route("POST", _METADATA, metadata.create),
    Route("PUT", _METADATA, metadata.update_all),
    Route("GET", _METADATA + "/{key}", metadata.show),
    Route("PUT", _METADATA + "/{key}", metadata.update),
    Route("DELETE", _METADATA + "/{key}", metadata.delete),
    Route("GET", _TAGS, tags.index, 26),
    Route("PUT", _TAGS, tags.update_all, 26),
    Route("DELETE", _TAGS, tags.delete_all, 26),
    Route("GET", _TAGS + "/{tag}", tags.show, 26),
    Route("PUT", _TAGS + "/{tag}", tags.update, 26),
    Route("DELETE", _TAGS + "/{tag}", tags.delete, 26),
    Route("GET", _SERVER + "/os-instance-actions", history.index),
    Route("GET", _SERVER + "/os-instance-actions/{request_id}", history.show),
    Route("GET", _VOLUMES, volumes.index),
    Route("POST", _VOLUMES, volumes.create),
    Route("GET", _VOLUMES + "/{volume_id}", volumes.show),
    Route("PUT", _VOLUMES + "/{volume_id}", volumes.update),
    Route("DELETE", _VOLUMES + "/{volume_id}", volumes.delete),
    Route("GET", _PORTS, interfaces.index),
    Route("POST", _PORTS, interfaces.create),
    Route("GET", _PORTS + "/{port_id}", interfaces.show),
    Route("DELETE", _PORTS + "/{port_id}", interfaces.delete),
    Route("GET", _SERVER + "/os-security-groups", security_groups.index),
    Route("GET", _SERVER + "/ips", addresses.index),
    Route("GET", _SERVER + "/ips/{network_label}", addresses.show),
    Route("GET", _SERVER + "/topology", topology.show, 78),
    Route("GET", _SERVER + "/diagnostics", inside.diagnostics),
    Route("POST", _SERVER + "/remote-consoles", consoles.create, 6),
    Route("GET", _SERVER + "/shares", shares.index, 97),
    Route("POST", _SERVER + "/shares", shares.create, 97),
    Route("GET", _SERVER + "/shares/{share_id}", shares.show, 97),
    Route("DELETE", _SERVER + "/shares/{share_id}", shares.delete, 97),
    Route("GET", _SERVER + "/os-server-password", addresses.show_password),
    Route("DELETE", _SERVER + "/os-server-password", addresses.clear_password),
]
