"""/v2.0/routers and /v2.0/floatingips: stored and shown. Nothing is routed."""

from sqlalchemy import select

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import bad_request, conflict, not_found
from causeway.devcloud.network import addresses, attributes, networks, ports, subnets
from causeway.devcloud.network.listing import collection, one, stamp
from causeway.devcloud.tables.base import now
from causeway.devcloud.tables.network import FloatingIp, Network, Port, Router
from causeway.devcloud.web import Call

INTERFACE, FLOATING = "network:router_interface", "network:floatingip"


def _view(row: Router) -> Json:
    gateway: Json = {"network_id": row.external_network_id, "enable_snat": True, "external_fixed_ips": []}
    return {
        "id": row.id,
        "name": row.name,
        "tenant_id": row.project_id,
        "project_id": row.project_id,
        "admin_state_up": row.admin_state_up,
        "status": "ACTIVE",
        "external_gateway_info": gateway if row.external_network_id else None,
        "routes": [],
        "description": row.description,
        "tags": row.tags,
        "created_at": stamp(row.created_at),
        "updated_at": stamp(row.updated_at),
        "revision_number": row.revision,
    }


def _find(call: Call, router_id: str) -> Router:
    row = call.session.get(Router, router_id)
    if row is None or not call.caller.owns(row.project_id):
        raise not_found(f"Router {router_id} could not be found", "RouterNotFound")
    return row


def list_routers(call: Call) -> Json:
    rows = call.session.scalars(select(Router).order_by(Router.created_at))
    return collection(call, "routers", [_view(row) for row in rows if call.caller.owns(row.project_id)])


def show(call: Call, router_id: str) -> Json:
    return one(call, "router", _view(_find(call, router_id)))


def create(call: Call) -> Json:
    given = call.body("router")
    row = Router(project_id=attributes.project_of(call, given), name="", description="", tags=[], revision=1)
    row.admin_state_up = True
    _set(call, row, given)
    call.session.add(row)
    call.session.flush()
    return {"router": _view(row)}


def update(call: Call, router_id: str) -> Json:
    row = _find(call, router_id)
    _set(call, row, call.body("router"))
    row.revision += 1
    row.updated_at = now()
    return {"router": _view(row)}


def _set(call: Call, row: Router, given: Json) -> None:
    for name in ("name", "description"):
        if given.get(name) is not None:
            setattr(row, name, attributes.text(name, given[name]))
    if given.get("admin_state_up") is not None:
        row.admin_state_up = attributes.boolean("admin_state_up", given["admin_state_up"])
    if "external_gateway_info" in given:
        gateway = attributes.mapping("external_gateway_info", given["external_gateway_info"])
        row.external_network_id = networks.find(call, gateway["network_id"]).id if gateway.get("network_id") else None


def delete(call: Call, router_id: str) -> None:
    row = _find(call, router_id)
    if _interfaces(call, row):
        raise conflict(f"Router {row.id} still has ports", "RouterInUse")
    call.session.delete(row)


def _interfaces(call: Call, row: Router) -> list[Port]:
    query = select(Port).where(Port.device_id == row.id, Port.device_owner == INTERFACE)
    return list(call.session.scalars(query))


def add_interface(call: Call, router_id: str) -> Json:
    row = _find(call, router_id)
    given = call.body()
    if given.get("port_id"):
        port = ports.find(call, str(given["port_id"]))
        port.device_id, port.device_owner = row.id, INTERFACE
    else:
        subnet = subnets.find(call, given.get("subnet_id"))
        if subnet.gateway_ip is None:
            raise bad_request(f"Subnet {subnet.id} has no gateway address.")
        network = call.session.get_one(Network, subnet.network_id)
        wanted = [{"subnet_id": subnet.id, "ip_address": subnet.gateway_ip}]
        port = _port(call, network, row.project_id, row.id, INTERFACE, wanted)
    return _interface_view(row, port)


def remove_interface(call: Call, router_id: str) -> Json:
    row = _find(call, router_id)
    given = call.body()
    for port in _interfaces(call, row):
        if port.id == given.get("port_id") or any(ip.subnet_id == given.get("subnet_id") for ip in port.fixed_ips):
            view = _interface_view(row, port)
            ports.remove(call, port)
            return view
    raise not_found(f"Router {row.id} has no such interface.", "RouterInterfaceNotFound")


def _interface_view(row: Router, port: Port) -> Json:
    subnet_ids = [each.subnet_id for each in port.fixed_ips]
    return {
        "id": row.id,
        "tenant_id": row.project_id,
        "port_id": port.id,
        "network_id": port.network_id,
        "subnet_id": subnet_ids[0] if subnet_ids else None,
        "subnet_ids": subnet_ids,
    }


def _port(call: Call, network: Network, project_id: str, device_id: str, owner: str, wanted: list[Json] | None) -> Port:
    row = Port(
        project_id=project_id,
        network_id=network.id,
        mac_address=addresses.new_mac(call.session, network.id),
        device_id=device_id,
        device_owner=owner,
        status="ACTIVE",
        port_security_enabled=False,
        security_groups=[],
        allowed_address_pairs=[],
        extra_dhcp_opts=[],
        tags=[],
    )
    row.fixed_ips = addresses.allot(call.session, network, wanted, [])
    call.session.add(row)
    call.session.flush()
    call.after_commit.append(call.cloud.plugger.notice_change)
    return row


def _floating_view(row: FloatingIp) -> Json:
    return {
        "id": row.id,
        "tenant_id": row.project_id,
        "project_id": row.project_id,
        "floating_network_id": row.floating_network_id,
        "floating_ip_address": row.floating_ip_address,
        "fixed_ip_address": row.fixed_ip_address,
        "port_id": row.port_id,
        "port_details": None,
        "router_id": row.router_id,
        "status": "ACTIVE" if row.port_id else "DOWN",
        "qos_policy_id": None,
        "dns_name": "",
        "dns_domain": "",
        "port_forwardings": [],
        "description": row.description,
        "tags": row.tags,
        "created_at": stamp(row.created_at),
        "updated_at": stamp(row.updated_at),
        "revision_number": row.revision,
    }


def _find_floating(call: Call, floating_ip_id: str) -> FloatingIp:
    row = call.session.get(FloatingIp, floating_ip_id)
    if row is None or not call.caller.owns(row.project_id):
        raise not_found(f"Floating IP {floating_ip_id} could not be found", "FloatingIPNotFound")
    return row


def list_floating_ips(call: Call) -> Json:
    rows = call.session.scalars(select(FloatingIp).order_by(FloatingIp.created_at))
    return collection(call, "floatingips", [_floating_view(row) for row in rows if call.caller.owns(row.project_id)])


def show_floating_ip(call: Call, floating_ip_id: str) -> Json:
    return one(call, "floatingip", _floating_view(_find_floating(call, floating_ip_id)))


def create_floating_ip(call: Call) -> Json:
    given = call.body("floatingip")
    network = networks.find(call, given.get("floating_network_id"))
    if not network.external:
        raise bad_request(f"Network {network.id} is not a valid external network.")
    project_id = attributes.project_of(call, given)
    asked = given.get("floating_ip_address")
    port = _port(call, network, project_id, "", FLOATING, [{"ip_address": asked}] if asked else None)
    if not port.fixed_ips:
        raise bad_request(f"Network {network.id} has no subnet.")
    row = FloatingIp(
        project_id=project_id,
        floating_network_id=network.id,
        floating_ip_address=port.fixed_ips[0].ip_address,
        floating_port_id=port.id,
        description=attributes.text("description", given.get("description") or ""),
        tags=[],
        revision=1,
    )
    _associate(call, row, given)
    call.session.add(row)
    call.session.flush()
    port.device_id = row.id
    return {"floatingip": _floating_view(row)}


def update_floating_ip(call: Call, floating_ip_id: str) -> Json:
    row = _find_floating(call, floating_ip_id)
    given = call.body("floatingip")
    if "description" in given:
        row.description = attributes.text("description", given["description"] or "")
    _associate(call, row, given)
    row.revision += 1
    row.updated_at = now()
    return {"floatingip": _floating_view(row)}


def _associate(call: Call, row: FloatingIp, given: Json) -> None:
    if "port_id" not in given:
        return
    former = call.session.get(Port, row.port_id) if row.port_id else None
    row.port_id = row.fixed_ip_address = row.router_id = None
    if given["port_id"] is not None:
        port = ports.find(call, str(given["port_id"]))
        known = [each.ip_address for each in port.fixed_ips]
        wanted = given.get("fixed_ip_address") or (known[0] if known else None)
        if wanted not in known:
            raise bad_request(f"Port {port.id} does not have fixed IP {wanted}.")
        row.port_id, row.fixed_ip_address = port.id, wanted
        call.cloud.plugger.notify(call.after_commit, port, "network-changed")
    if former is not None and former.id != row.port_id:
        call.cloud.plugger.notify(call.after_commit, former, "network-changed")


def delete_floating_ip(call: Call, floating_ip_id: str) -> None:
    row = _find_floating(call, floating_ip_id)
    port = call.session.get(Port, row.floating_port_id)
    if row.port_id and (target := call.session.get(Port, row.port_id)) is not None:
        call.cloud.plugger.notify(call.after_commit, target, "network-changed")
    call.session.delete(row)
    if port is not None:
        ports.remove(call, port)
