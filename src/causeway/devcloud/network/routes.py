"""The Network API on one screen."""

from functools import partial

import msgspec

from causeway.devcloud.cloud import Cloud
from causeway.devcloud.network import (
    bindings,
    extensions,
    networks,
    ports,
    qos,
    quotas,
    routers,
    security_groups,
    subnets,
    tags,
)
from causeway.devcloud.web import Route, Service

V2 = "/v2.0"
BINDINGS = V2 + "/ports/{port_id}/bindings"
GROUPS, RULES = V2 + "/security-groups", V2 + "/security-group-rules"
POLICIES = V2 + "/qos/policies"
ROUTERS, FLOATING_IPS = V2 + "/routers", V2 + "/floatingips"

ROUTES = [
    Route("GET", "/", extensions.list_versions, public=True),
    Route("GET", V2, extensions.show_version, public=True),
    Route("GET", V2 + "/networks", networks.list_networks),
    Route("POST", V2 + "/networks", networks.create, 201),
    Route("GET", V2 + "/networks/{network_id}", networks.show),
    Route("PUT", V2 + "/networks/{network_id}", networks.update),
    Route("DELETE", V2 + "/networks/{network_id}", networks.delete, 204),
    Route("GET", V2 + "/subnets", subnets.list_subnets),
    Route("POST", V2 + "/subnets", subnets.create, 201),
    Route("GET", V2 + "/subnets/{subnet_id}", subnets.show),
    Route("PUT", V2 + "/subnets/{subnet_id}", subnets.update),
    Route("DELETE", V2 + "/subnets/{subnet_id}", subnets.delete, 204),
    Route("GET", V2 + "/ports", ports.list_ports),
    Route("POST", V2 + "/ports", ports.create, 201),
    Route("GET", V2 + "/ports/{port_id}", ports.show),
    Route("PUT", V2 + "/ports/{port_id}", ports.update),
    Route("DELETE", V2 + "/ports/{port_id}", ports.delete, 204),
    Route("GET", BINDINGS, bindings.list_bindings),
    Route("POST", BINDINGS, bindings.create, 201),
    Route("GET", BINDINGS + "/{host}", bindings.show),
    Route("PUT", BINDINGS + "/{host}", bindings.update),
    Route("PUT", BINDINGS + "/{host}/activate", bindings.activate),
    Route("DELETE", BINDINGS + "/{host}", bindings.delete, 204),
    *(
        route
        for family in tags.FINDERS
        for route in tags.routes(f"{V2}/{family}/{{{family.removesuffix('s')}_id}}/tags", family)
    ),
    Route("GET", GROUPS, security_groups.list_groups),
    Route("POST", GROUPS, security_groups.create, 201),
    Route("GET", GROUPS + "/{group_id}", security_groups.show),
    Route("PUT", GROUPS + "/{group_id}", security_groups.update),
    Route("DELETE", GROUPS + "/{group_id}", security_groups.delete, 204),
    Route("GET", RULES, security_groups.list_rules),
    Route("POST", RULES, security_groups.create_rule, 201),
    Route("GET", RULES + "/{rule_id}", security_groups.show_rule),
    Route("DELETE", RULES + "/{rule_id}", security_groups.delete_rule, 204),
    Route("GET", POLICIES, qos.list_policies),
    Route("POST", POLICIES, qos.create, 201),
    Route("GET", POLICIES + "/{policy_id}", qos.show),
    Route("DELETE", POLICIES + "/{policy_id}", qos.delete, 204),
    *(
        route
        for kind in qos.AMOUNTS
        for route in (
            Route("POST", f"{POLICIES}/{{policy_id}}/{kind}_rules", partial(qos.create_rule, kind=kind), 201),
            Route("DELETE", f"{POLICIES}/{{policy_id}}/{kind}_rules/{{rule_id}}", qos.delete_rule, 204),
        )
    ),
    Route("GET", V2 + "/quotas", quotas.list_quotas),
    Route("GET", V2 + "/quotas/{project_id}", quotas.show),
    Route("PUT", V2 + "/quotas/{project_id}", quotas.update),
    Route("DELETE", V2 + "/quotas/{project_id}", quotas.delete, 204),
    Route("GET", V2 + "/quotas/{project_id}/default", quotas.show_default),
    Route("GET", V2 + "/quotas/{project_id}/details", quotas.show_details),
    Route("GET", V2 + "/quotas/{project_id}/details.json", quotas.show_details),
    Route("GET", V2 + "/extensions", extensions.list_extensions),
    Route("GET", V2 + "/extensions/{alias}", extensions.show_extension),
    Route("GET", V2 + "/agents", extensions.list_agents),
    Route("GET", V2 + "/agents/{agent_id}", extensions.show_agent),
    Route("GET", V2 + "/availability_zones", extensions.list_availability_zones),
    Route("GET", ROUTERS, routers.list_routers),
    Route("POST", ROUTERS, routers.create, 201),
    Route("GET", ROUTERS + "/{router_id}", routers.show),
    Route("PUT", ROUTERS + "/{router_id}", routers.update),
    Route("DELETE", ROUTERS + "/{router_id}", routers.delete, 204),
    Route("PUT", ROUTERS + "/{router_id}/add_router_interface", routers.add_interface),
    Route("PUT", ROUTERS + "/{router_id}/remove_router_interface", routers.remove_interface),
    Route("GET", FLOATING_IPS, routers.list_floating_ips),
    Route("POST", FLOATING_IPS, routers.create_floating_ip, 201),
    Route("GET", FLOATING_IPS + "/{floating_ip_id}", routers.show_floating_ip),
    Route("PUT", FLOATING_IPS + "/{floating_ip_id}", routers.update_floating_ip),
    Route("DELETE", FLOATING_IPS + "/{floating_ip_id}", routers.delete_floating_ip, 204),
]


def error_body(_status: int, message: str, kind: str) -> tuple[str, bytes]:
    body = {"NeutronError": {"type": kind or "HTTPError", "message": message, "detail": ""}}
    return "application/json", msgspec.json.encode(body)


def make_service(cloud: Cloud) -> Service:
    return Service(cloud, "network", ROUTES, error_body)
