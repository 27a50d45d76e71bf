"""What the Network API offers beyond its core: versions, extensions, agents and availability zones."""

from sqlalchemy import select

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import not_found
from causeway.devcloud.network.listing import collection
from causeway.devcloud.tables.base import now
from causeway.devcloud.tables.network import Host
from causeway.devcloud.web import Call, links_root

EXTENSIONS = {
    "agent": "agent",
    "allowed-address-pairs": "Allowed Address Pairs",
    "availability_zone": "Availability Zone",
    "network_availability_zone": "Network Availability Zone",
    "binding": "Port Binding",
    "binding-extended": "Port Bindings Extended",
    "dns-integration": "DNS Integration",
    "empty-string-filtering": "Empty String Filtering Extension",
    "external-net": "Neutron external network",
    "extra_dhcp_opt": "Neutron Extra DHCP options",
    "ip-substring-filtering": "IP address substring filtering",
    "net-mtu": "Network MTU",
    "net-mtu-writable": "Network MTU (writable)",
    "port-security": "Port Security",
    "port-numa-affinity-policy": "Port NUMA affinity policy",
    "port-trusted-vif": "Port Trusted VIF",
    "port-resource-request": "Port Resource Request",
    "port-resource-request-groups": "Port Resource Request Groups",
    "project-id": "project_id field enabled",
    "provider": "Provider Network",
    "qos": "Quality of Service",
    "qos-bw-minimum-ingress": "Ingress direction for QoS minimum bandwidth rule",
    "qos-pps-minimum": "QoS minimum packet rate rule",
    "quotas": "Quota management support",
    "quota_details": "Quota details management support",
    "revision-if-match": "If-Match constraints based on revision_number",
    "router": "Neutron L3 Router",
    "security-group": "security-group",
    "sorting": "Sorting support",
    "pagination": "Pagination support",
    "standard-attr-description": "standard-attr-description",
    "standard-attr-revisions": "Resource revision numbers",
    "standard-attr-tag": "Tag support for resources with standard attribute",
    "standard-attr-timestamp": "Resource timestamps",
    "uplink-status-propagation": "Uplink Status Propagation",
}


def list_versions(call: Call) -> Json:
    return {"versions": [{"id": "v2.0", "status": "CURRENT", "links": [{"rel": "self", "href": _href(call)}]}]}


def show_version(call: Call) -> Json:
    families = ("networks", "subnets", "ports", "routers", "floatingips", "security-groups", "security-group-rules")
    return {
        "resources": [
            {
                "name": family.rstrip("s"),
                "collection": family,
                "links": [{"rel": "self", "href": f"{_href(call)}{family}"}],
            }
            for family in families
        ]
    }


def _href(call: Call) -> str:
    return f"{links_root(call.request)}/v2.0/"


def _view(alias: str) -> Json:
    name = EXTENSIONS[alias]
    return {"alias": alias, "name": name, "description": name, "updated": "2020-01-01T00:00:00-00:00", "links": []}


def list_extensions(call: Call) -> Json:
    return collection(call, "extensions", [_view(alias) for alias in EXTENSIONS])


def show_extension(_call: Call, alias: str) -> Json:
    if alias not in EXTENSIONS:
        raise not_found(f"Extension with alias {alias} does not exist", "HTTPNotFound")
    return {"extension": _view(alias)}


def _agent(row: Host) -> Json:
    return {
        "id": row.agent_id,
        "agent_type": "Linux bridge agent",
        "binary": "neutron-linuxbridge-agent",
        "topic": "N/A",
        "host": row.name,
        "alive": True,
        "admin_state_up": True,
        "availability_zone": None,
        "created_at": row.created_at[:19].replace("T", " "),
        "started_at": row.created_at[:19].replace("T", " "),
        "heartbeat_timestamp": now()[:19].replace("T", " "),
        "description": None,
        "resources_synced": None,
        "configurations": {"tunnel_types": ["vxlan"], "devices": 0},
    }


def list_agents(call: Call) -> Json:
    call.require_privileged()
    rows = call.session.scalars(select(Host).order_by(Host.created_at))
    return collection(call, "agents", [_agent(row) for row in rows])


def show_agent(call: Call, agent_id: str) -> Json:
    call.require_privileged()
    row = call.session.scalars(select(Host).where(Host.agent_id == agent_id)).first()
    if row is None:
        raise not_found(f"Agent {agent_id} could not be found.", "AgentNotFound")
    return {"agent": _agent(row)}


def list_availability_zones(call: Call) -> Json:
    rows: list[Json] = [
        {"name": "nova", "resource": resource, "state": "available"} for resource in ("network", "router")
    ]
    return collection(call, "availability_zones", rows)
