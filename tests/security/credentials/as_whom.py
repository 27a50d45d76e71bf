"""Every call that the control plane makes to the image, volume, network and identity services: as whom, and why that may be.

``as_whom`` is what `causeway.clients.rights` calls it: ``named`` (only with the user's token while a request is served),
``ONLY_USER``, ``OF_SERVER``, ``SERVICE``, or several if a method makes several calls. Whatever is not made with the user's token
alone says what was checked before.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """``files``: where the method is called, below ``causeway``. ``checked``: why the call may be made like that."""

    method: str
    as_whom: str
    files: str
    checked: str


# The reasons that many have.
_USERS = "The service decides by the user's token, and nothing else does; what it answers is kept with the operation."
_HALF_RESERVED = "Only a volume of the server's project that no attachment belongs to is reset. The user sees nothing."
_RECORDED = "The id is in the server's record or in the journal: only accepted operations write it there."
_OF_MOVES = "An image for the time of an accepted move. It belongs to our project, and its id is ours."
_MADE = "The operation made it, under an id of ours or one that the service gave it; only its journal knows that."
_PORTS_OF = (
    "Ports of one server. The server was loaded, and the caller may see or change it (policy), or an operation owns it."
)
_VIF = (
    "The port is in the server's record; it was checked with the user's token when it was given (`validate_networks`)."
)
_OPERATOR = "An operator's audit, which looks at the whole cloud."
_OPERATORS_CHECK = (
    "An operator's check of a Nova, with Nova's own accounts, which are in a file that only operators read."
)
_BINDINGS = "Users may not see or change bindings: " + _VIF

TABLE = (
    # images
    Row("images.forward", "ONLY_USER", "api/proxies/forward.py", _USERS),
    Row(
        "images.show",
        "named",
        "api/servers/actions/rebuild.py api/servers/actions/rescue.py api/servers/creating/create_devices.py"
        " conductor/endpoints/image_caching.py operations/rebuild_volume.py requests/checked.py",
        _USERS,
    ),
    Row("images.create", "ONLY_USER", "api/servers/actions/images.py", "It is the user's image, in their project."),
    Row("images.create", "SERVICE", "moves/steps/images.py", _OF_MOVES),
    Row("images.create", "SERVICE", "embedded/content.py", "The demonstration's image, when the cloud starts."),
    Row("images.upload", "OF_SERVER", "embedded/content.py", "The demonstration's image, when the cloud starts."),
    Row("images.list_all", "SERVICE", "embedded/content.py audit/gather.py", _OPERATOR),
    Row(
        "images.list_of",
        "named",
        "operations/images.py",
        "What the user sees; without a valid token, what is of the project of an accepted backup.",
    ),
    Row("images.delete", "named", "operations/images.py", "A backup of another project: the user decides."),
    Row(
        "images.delete",
        "OF_SERVER",
        "operations/images.py operations/requests.py operations/shelve.py operations/volume_images.py "
        "moves/without_guest/unshelve.py",
        _MADE,
    ),
    Row(
        "images.delete",
        "SERVICE",
        "moves/steps/hand_over.py moves/steps/images.py moves/steps/warm.py moves/undo_late.py",
        _OF_MOVES,
    ),
    Row("images.delete", "OF_SERVER", "operations/delete.py", _RECORDED),
    Row("images.delete", "OF_SERVER", "audit/fixes.py", _OPERATOR),
    Row(
        "images.show_of_server",
        "OF_SERVER",
        "api/servers/actions/shelve.py operations/images.py operations/requests.py operations/shelve.py"
        " operations/volume_images.py",
        _MADE,
    ),
    Row("images.show_of_server", "SERVICE", "moves/steps/images.py", _OF_MOVES),
    Row("images.set_properties", "OF_SERVER", "operations/root_disk_images.py operations/volume_images.py", _MADE),
    Row("images.stream", "OF_SERVER", "operations/volume_images.py", _MADE),
    # volumes
    Row("volumes.forward", "ONLY_USER", "api/proxies/forward.py", _USERS),
    Row(
        "volumes.show",
        "named",
        "api/resources/assisted_snapshots.py api/servers/actions/rebuild.py api/servers/actions/rescue.py"
        " api/servers/creating/create_devices.py api/servers/subresources/volume_swap.py"
        " api/servers/subresources/volumes.py operations/volumes.py",
        _USERS,
    ),
    Row("volumes.show_snapshot", "named", "api/servers/creating/create_devices.py", _USERS),
    Row("volumes.check_snapshots_left", "named", "api/servers/actions/images.py", _USERS),
    Row("volumes.create", "ONLY_USER", "devices/making.py", "It is the user's volume, in their project."),
    Row("volumes.create_snapshot", "ONLY_USER", "operations/volume_images.py", "It is the user's snapshot."),
    Row(
        "volumes.create_attachment",
        "called_as",
        "devices/device_records.py",
        "Passed on: see `device_records.reserve_volume`.",
    ),
    Row("volumes.create_attachment", "OF_SERVER", "moves/steps/reservations.py moves/steps/live_prepare.py", _RECORDED),
    Row(
        "device_records.reserve_volume",
        "named",
        "operations/volumes.py operations/volume_swap.py",
        "The volume was shown to the user with their token (`volumes.show`).",
    ),
    Row(
        "device_records.reserve_volume",
        "called_as",
        "operations/given_volumes.py",
        "As the build reserved it: one that the user named and was shown, or that the server has already.",
    ),
    Row(
        "device_records.reserve_volume",
        "named OF_SERVER",
        "devices/making.py",
        "One that the user named was shown to them; the others were made for the server.",
    ),
    Row("device_records.reserve_volume", "OF_SERVER", "devices/attachments.py", _RECORDED),
    Row("volumes.delete", "OF_SERVER", "operations/build_failed.py", _MADE),
    Row(
        "volumes.delete",
        "OF_SERVER SERVICE named",
        "devices/releasing.py",
        "Made for the server; or the user may delete it, or it is of the server's project (`owner_of`).",
    ),
    Row(
        "volumes.owner_of",
        "SERVICE",
        "devices/releasing.py",
        "The volume is in the server's record. The user sees nothing.",
    ),
    Row("volumes.show_any", "SERVICE", "devices/half_reserved.py", _HALF_RESERVED),
    Row(
        "volumes.encryption_of",
        "OF_SERVER",
        "conductor/cells/volume_keys.py",
        "The control plane has ordered this host to open this volume: it sealed a grant into the order.",
    ),
    Row(
        "keys.read_key",
        "OF_SERVER",
        "conductor/cells/volume_keys.py",
        "The volume service says that it is the key of a volume which this host was ordered to open (a grant).",
    ),
    Row(
        "keys.read_key",
        "SERVICE",
        "conductor/cells/volume_keys.py",
        "A key of our own (`deployment`), for a server that this host was ordered to make or start (a grant).",
    ),
    Row(
        "keys.make_key",
        "ONLY_USER SERVICE",
        "servers/tpm_keys.py",
        "The user's own, or our own: by what flavor and image ask for, which an accepted build has.",
    ),
    Row(
        "keys.delete_key",
        "OF_SERVER SERVICE",
        "servers/tpm_keys.py",
        "It was made for the server, whose record names it, and the server is deleted.",
    ),
    Row(
        "volumes.show_of_server",
        "OF_SERVER",
        "conductor/endpoints/external_events.py",
        "The volume service said that a volume of a server is larger (policy). Only its size is used, and only for that server.",
    ),
    Row("volumes.attachments_of", "SERVICE", "devices/half_reserved.py", _HALF_RESERVED),
    Row("volumes.reset_to_available", "SERVICE", "devices/half_reserved.py", _HALF_RESERVED),
    Row(
        "volumes.reimage",
        "of_server_with",
        "operations/rebuild_volume.py",
        "The root volume is in the record; the image was shown to the user with their token.",
    ),
    Row("volumes.is_being_filled", "OF_SERVER", "operations/rebuild_volume.py", _RECORDED),
    Row("volumes.wait_reimaged", "OF_SERVER", "operations/rebuild_volume.py", _RECORDED),
    Row("volumes.wait_available", "OF_SERVER", "devices/making.py devices/releasing.py", _MADE),
    Row("volumes.wait_for_snapshot", "OF_SERVER", "operations/volume_images.py", _MADE),
    Row("volumes.delete_snapshot", "OF_SERVER", "operations/volume_images.py", _MADE),
    Row(
        "volumes.snapshots_named", "SERVICE", "operations/volume_images.py", "Found by a name that has our image's id."
    ),
    Row(
        "volumes.made_for",
        "SERVICE",
        "operations/build_failed.py devices/making.py devices/releasing.py",
        "Only volumes of the server's project, by the id of our device.",
    ),
    Row(
        "volumes.attachments_of_server",
        "SERVICE",
        "moves/steps/check.py moves/steps/reservations.py operations/given_volumes.py devices/device_records.py devices/late.py"
        " moves/steps/live_prepare.py devices/releasing.py",
        "Attachments of a server that an accepted operation owns; the user does not see them.",
    ),
    Row("volumes.get_attachment", "OF_SERVER", "audit/fixes.py", _OPERATOR),
    Row(
        "volumes.get_attachment",
        "OF_SERVER",
        "operations/attachment_refresh.py devices/attachments.py moves/steps/live_prepare.py",
        _RECORDED,
    ),
    Row("volumes.update_attachment", "OF_SERVER", "operations/attachment_refresh.py", _RECORDED),
    Row(
        "volumes.complete_attachment",
        "OF_SERVER",
        "operations/attachment_refresh.py operations/given_volumes.py servers/guests.py operations/volumes.py"
        " devices/attachments.py",
        _RECORDED,
    ),
    Row("volumes.delete_attachment", "OF_SERVER", "audit/fixes.py", _OPERATOR),
    Row(
        "volumes.delete_attachment",
        "OF_SERVER",
        "moves/steps/confirm.py moves/steps/finish.py moves/steps/hand_over.py"
        " moves/steps/prepare.py moves/steps/reservations.py moves/steps/revert.py"
        " operations/given_volumes.py operations/volume_swap.py operations/volumes.py"
        " devices/attachments.py"
        " devices/device_records.py devices/late.py moves/steps/live_prepare.py devices/releasing.py",
        _RECORDED,
    ),
    Row(
        "volumes.complete_migration",
        "SERVICE",
        "operations/volume_swap.py",
        "Both volumes were shown to the requester, who is block storage (policy), and it says that one moves to the other.",
    ),
    Row(
        "volumes.report_snapshot",
        "SERVICE",
        "operations/volume_snapshots.py",
        "Block storage requested the snapshot (policy) of a volume that was shown with its token.",
    ),
    Row("volumes.list_all", "SERVICE", "audit/gather.py", _OPERATOR),
    Row("volumes.list_all_attachments", "SERVICE", "audit/gather.py", _OPERATOR),
    Row("volumes.attachment_pages", "SERVICE", "adopt/check/services.py", _OPERATORS_CHECK),
    # network
    Row("network.forward", "ONLY_USER", "api/proxies/forward.py", _USERS),
    Row("network.list_networks", "named", "api/proxies/networks.py requests/checked.py", _USERS),
    Row(
        "network.port_of_user",
        "SERVICE named",
        "requests/checked.py",
        "Only after the user's token has shown the port.",
    ),
    Row(
        "network.validate_networks",
        "SERVICE named",
        "api/servers/creating/create_networks.py api/servers/subresources/interfaces.py operations/interfaces.py",
        "Networks and ports are shown with the user's token first, and a port must be of the server's project; only then"
        " are what users may not see (resources, devices), the quota and the use of an address read.",
    ),
    Row("network.list_security_groups", "named", "api/servers/subresources/security_groups.py", _USERS),
    Row(
        "network.security_group_ids",
        "named",
        "api/servers/creating/create_networks.py api/servers/subresources/security_groups.py devices/making.py",
        _USERS,
    ),
    Row(
        "network.show_port",
        "SERVICE",
        "api/proxies/floating_ips.py",
        "The port of a floating IP that was shown with the user's token; the user sees which server has it.",
    ),
    Row(
        "network.show_port",
        "SERVICE",
        "api/servers/subresources/interfaces.py",
        "The user sees the port only if it is that of a server that they may see.",
    ),
    Row("network.show_port", "SERVICE", "api/servers/subresources/security_groups.py", _PORTS_OF),
    Row("network.show_port", "SERVICE", "audit/fixes.py", _OPERATOR),
    Row("network.undo_announcement", "SERVICE", "audit/fixes.py", _OPERATOR),
    Row("network.show_port", "SERVICE", "devices/making.py", _VIF),
    Row(
        "network.ports_of_server",
        "SERVICE",
        "api/proxies/floating_ips.py api/servers/subresources/interfaces.py"
        " api/servers/subresources/security_groups.py conductor/endpoints/candidates.py"
        " moves/steps/select.py moves/steps/live_prepare.py operations/build_failed.py servers/guests.py operations/interfaces.py"
        " devices/making.py moves/placing.py devices/port_resources.py devices/releasing.py devices/late.py",
        _PORTS_OF,
    ),
    Row("network.group_names", "SERVICE", "api/servers/subresources/security_groups.py", _PORTS_OF),
    Row(
        "network.change_port",
        "SERVICE",
        "api/servers/subresources/security_groups.py",
        _PORTS_OF + " The groups are those that the user's token shows.",
    ),
    *(
        Row(
            f"network.{method}",
            "SERVICE named",
            "api/servers/actions/fixed_ips.py",
            "A port of the server that the user's token shows; users may not change addresses themselves.",
        )
        for method in ("add_fixed_ip", "remove_fixed_ip")
    ),
    Row("network.network_info", "SERVICE", "conductor/endpoints/shown_ports.py adopt/importing/ports.py", _PORTS_OF),
    Row("network.ports_of_servers", "SERVICE", "adopt/importing/ports.py", _PORTS_OF),
    Row("network.vif_of_port", "SERVICE", "operations/interfaces.py devices/making.py", _VIF),
    Row(
        "network.create_port",
        "SERVICE",
        "devices/making.py",
        "A port of the server's project on a network that was shown with the user's token (`validate_networks`).",
    ),
    Row(
        "network.delete_port",
        "SERVICE",
        "operations/build_failed.py operations/interfaces.py devices/releasing.py",
        _MADE,
    ),
    Row("network.unbind_port", "SERVICE", "operations/interfaces.py devices/releasing.py", _BINDINGS),
    Row("network.update_port", "SERVICE", "servers/guests.py", _BINDINGS),
    Row("network.update_port", "SERVICE", "audit/fixes.py", _OPERATOR),
    Row("network.create_binding", "SERVICE", "moves/steps/prepare.py moves/steps/live_prepare.py", _BINDINGS),
    *(
        Row(f"network.{method}", "SERVICE", files, _BINDINGS)
        for method, files in (
            ("announce_migration", "moves/steps/live_prepare.py"),
            ("undo_announcement", "moves/steps/live_prepare.py devices/late.py"),
        )
    ),
    Row("network.activate_binding", "SERVICE", "moves/steps/dead_source.py", _BINDINGS),
    Row(
        "network.delete_binding",
        "SERVICE",
        "moves/steps/confirm.py moves/steps/prepare.py moves/steps/revert.py"
        " moves/steps/live_prepare.py devices/late.py",
        _BINDINGS,
    ),
    *(
        Row(f"network.{method}", "SERVICE", "audit/fixes.py", _OPERATOR)
        for method in ("create_binding", "activate_binding", "delete_binding")
    ),
    Row("network.list_bindings", "SERVICE", "audit/gather.py", _OPERATOR),
    Row("network.list_ports", "SERVICE", "audit/gather.py", _OPERATOR),
    Row("network.port_pages", "SERVICE", "adopt/check/services.py", _OPERATORS_CHECK),
    Row("network.wiring_agents", "SERVICE", "conductor/endpoints/candidates.py", "Names no thing of a user."),
    Row(
        "network.ports_with_address",
        "SERVICE",
        "embedded/metadata_agent.py metadata/callers.py",
        "A guest asks for its own metadata: it has no token, and gets what its signed address says.",
    ),
    Row("network.networks_of_provider", "SERVICE", "metadata/callers.py", "Names no thing of a user."),
)
