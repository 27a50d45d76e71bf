"""What is passed on to other services, and what old clients ask for."""

from __future__ import annotations

from causeway.api.answers.parts import (
    COUNT,
    INTEGER,
    IP,
    NEXT,
    NULL,
    SECONDS,
    TEXT,
    URL,
    UUID,
    either,
    enum,
    many,
    mapping,
    null,
    record,
    shown_as,
    versions,
)

# Networks. What only nova-network knew is null.
_NETWORK = record(
    {"id": UUID, "label": TEXT}
    | dict.fromkeys(
        (
            "bridge", "bridge_interface", "broadcast", "cidr", "cidr_v6", "created_at", "deleted", "deleted_at", "dhcp_server",
            "dhcp_start", "dns1", "dns2", "enable_dhcp", "gateway", "gateway_v6", "host", "injected", "mtu", "multi_host",
            "netmask", "netmask_v6", "priority", "project_id", "rxtx_base", "share_address", "updated_at", "vlan",
            "vpn_private_address", "vpn_public_address", "vpn_public_port",
        ),
        NULL,
    )
)  # fmt: skip
NETWORKS = shown_as("networks", many(_NETWORK))
NETWORK = shown_as("network", _NETWORK)
_TENANT_NETWORK = record({"id": UUID, "label": TEXT, "cidr": enum("None")})
TENANT_NETWORKS = shown_as("networks", many(_TENANT_NETWORK))
TENANT_NETWORK = shown_as("network", _TENANT_NETWORK)

_FLOATING_IP = record({"id": UUID, "ip": IP, "pool": TEXT, "fixed_ip": null(IP), "instance_id": null(UUID)})
POOLS = shown_as("floating_ip_pools", many(record({"name": TEXT})))
FLOATING_IPS = shown_as("floating_ips", many(_FLOATING_IP))
FLOATING_IP = shown_as("floating_ip", _FLOATING_IP)

_RULE = record(
    {
        "id": UUID,
        "parent_group_id": UUID,
        "ip_protocol": null(TEXT),
        "from_port": null(INTEGER),
        "to_port": null(INTEGER),
        # of the two, one is empty
        "group": either(record({}), record({"name": TEXT, "tenant_id": TEXT})),
        "ip_range": either(record({}), record({"cidr": TEXT})),
    }
)
_GROUP = record({"id": UUID, "name": TEXT, "description": TEXT, "tenant_id": TEXT, "rules": many(_RULE)})
SECURITY_GROUPS = shown_as("security_groups", many(_GROUP))
SECURITY_GROUP = shown_as("security_group", _GROUP)
SECURITY_GROUP_RULE = shown_as("security_group_rule", _RULE)

_LINK = {"rel": enum("self", "bookmark"), "href": URL}
_IMAGE_LINKS = many(
    either(
        record(_LINK), record({"rel": enum("alternate"), "type": enum("application/vnd.openstack.image"), "href": URL})
    ),
    least=3,
    most=3,
)
_BRIEF = {"id": UUID, "name": null(TEXT), "links": _IMAGE_LINKS}
_IMAGE = record(
    _BRIEF
    | {
        "status": enum("ACTIVE", "SAVING", "DELETED", "ERROR", "UNKNOWN"),
        "progress": {"type": "integer", "minimum": 0, "maximum": 100},
        "minDisk": COUNT,
        "minRam": COUNT,
        "created": SECONDS,
        "updated": SECONDS,
        "metadata": mapping(TEXT),
        "OS-EXT-IMG-SIZE:size": null(COUNT),
    },
    {
        "OS-DCF:diskConfig": enum("AUTO", "MANUAL"),
        "server": record({"id": TEXT, "links": many(record(_LINK), least=2, most=2)}),
    },
)
IMAGES = shown_as("images", many(record(_BRIEF)), {"images_links": NEXT})
IMAGES_DETAIL = shown_as("images", many(_IMAGE), {"images_links": NEXT})
IMAGE = shown_as("image", _IMAGE)

_VOLUME = record(
    {
        "id": UUID,
        "status": TEXT,
        "size": COUNT,
        "availabilityZone": TEXT,
        "createdAt": SECONDS,
        "displayName": null(TEXT),
        "displayDescription": null(TEXT),
        "volumeType": null(TEXT),
        "snapshotId": null(UUID),
        "metadata": mapping(TEXT),
        "attachments": many(
            either(record({}), record({"id": UUID, "volumeId": UUID, "serverId": UUID}, {"device": TEXT})),
            least=1,
            most=1,
        ),
    }
)
VOLUMES = shown_as("volumes", many(_VOLUME))
VOLUME = shown_as("volume", _VOLUME)
_SNAPSHOT = record(
    {
        "id": UUID,
        "volumeId": UUID,
        "status": TEXT,
        "size": COUNT,
        "createdAt": SECONDS,
        "displayName": null(TEXT),
        "displayDescription": null(TEXT),
    }
)
SNAPSHOTS = shown_as("snapshots", many(_SNAPSHOT))
SNAPSHOT = shown_as("snapshot", _SNAPSHOT)

_EXTENSION = record(
    {
        "alias": TEXT,
        "name": TEXT,
        "description": TEXT,
        "namespace": URL,
        "updated": SECONDS,
        "links": many(record({}), most=0),
    }
)
EXTENSIONS = shown_as("extensions", many(_EXTENSION))
EXTENSION = shown_as("extension", _EXTENSION)
VERSION = versions(
    record(
        {
            "version": record(
                {
                    "id": enum("v2.0", "v2.1"),
                    "status": enum("CURRENT", "DEPRECATED"),
                    "version": TEXT,
                    "min_version": TEXT,
                    "updated": SECONDS,
                    "links": many(
                        either(
                            record({"rel": enum("self"), "href": URL}),
                            record({"rel": enum("describedby"), "type": enum("text/html"), "href": URL}),
                        ),
                        least=2,
                        most=2,
                    ),
                    "media-types": many(record({"base": enum("application/json"), "type": TEXT}), least=1),
                }
            )
        }
    )
)
