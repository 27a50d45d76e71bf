"""/v2.0/ports."""

from typing import Any

from sqlalchemy import select

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import bad_request, conflict, forbidden, not_found
from causeway.devcloud.network import addresses, attributes, binding, networks, qos, security_groups
from causeway.devcloud.network.listing import collection, many, one, stamp
from causeway.devcloud.tables.base import new_id, now
from causeway.devcloud.tables.network import UNBOUND, FloatingIp, Network, Port, PortHints
from causeway.devcloud.web import Call

KNOWN = frozenset(
    (
        *("id", "name", "description", "network_id", "project_id", "tenant_id", "mac_address", "admin_state_up"),
        *("device_id", "device_owner", "fixed_ips", "security_groups", "port_security_enabled", "status", "tags"),
        *("allowed_address_pairs", "extra_dhcp_opts", "dns_name", "dns_domain", "propagate_uplink_status", "hints"),
        *("binding:host_id", "binding:vnic_type", "binding:profile", "binding:vif_type", "binding:vif_details"),
        *("qos_policy_id", "numa_affinity_policy", "device_profile", "trusted", "hardware_offload_type"),
    )
)
SQL_FILTERS = ("id", "device_id", "network_id", "project_id", "name", "mac_address")
PRIVILEGED = ("binding:host_id", "binding:profile", "trusted")
NUMA_POLICIES = ("required", "preferred", "legacy", "socket")
VNIC_TYPES = (
    "normal",
    "direct",
    "macvtap",
    "direct-physical",
    "virtio-forwarder",
    "smart-nic",
    "baremetal",
    "vdpa",
    "remote-managed",
    "accelerator-direct",
    "accelerator-direct-physical",
)


def view(call: Call, row: Port) -> Json:
    active, hints = row.active_binding, call.session.get(PortHints, row.id)
    body: Json = {
        "id": row.id,
        "name": row.name,
        "tenant_id": row.project_id,
        "project_id": row.project_id,
        "network_id": row.network_id,
        "mac_address": row.mac_address,
        "admin_state_up": row.admin_state_up,
        "status": row.status,
        "device_id": row.device_id,
        "device_owner": row.device_owner,
        "fixed_ips": [{"subnet_id": each.subnet_id, "ip_address": each.ip_address} for each in row.fixed_ips],
        "allowed_address_pairs": row.allowed_address_pairs,
        "extra_dhcp_opts": row.extra_dhcp_opts,
        "security_groups": row.security_groups,
        "port_security_enabled": row.port_security_enabled,
        "binding:vnic_type": row.vnic_type,
        "dns_name": row.dns_name,
        "dns_assignment": [],
        "dns_domain": "",
        "propagate_uplink_status": row.propagate_uplink_status,
        "qos_policy_id": qos.policy_of(call, row.id),
        "qos_network_policy_id": qos.policy_of(call, row.network_id),
        "ip_allocation": "immediate",
        "numa_affinity_policy": hints.numa_affinity_policy if hints is not None else None,
        "device_profile": None,
        "hints": {},
        "description": row.description,
        "tags": row.tags,
        "created_at": stamp(row.created_at),
        "updated_at": stamp(row.updated_at),
        "revision_number": row.revision,
    }
    if call.caller.is_privileged:
        body["trusted"] = hints.trusted if hints is not None else None
        body["binding:host_id"] = active.host if active else ""
        body["binding:profile"] = active.profile if active else {}
        body["binding:vif_type"] = active.vif_type if active else UNBOUND
        body["binding:vif_details"] = active.vif_details if active else {}
        body["resource_request"] = qos.resource_request(call, row)
    return body


def find(call: Call, port_id: str) -> Port:
    """A port of the caller, or on one of their networks; ApiError 404 otherwise."""
    row = call.session.get(Port, port_id)
    if row is None or not _may_see(call, row):
        raise not_found(f"Port {port_id} could not be found.", "PortNotFound")
    return row


def _may_see(call: Call, row: Port) -> bool:
    if call.caller.owns(row.project_id):
        return True
    network = call.session.get(Network, row.network_id)
    return network is not None and network.project_id == call.caller.project_id


def list_ports(call: Call) -> Json:
    params = call.request.params
    query = select(Port).order_by(Port.created_at)
    for name in SQL_FILTERS:
        if name in params:
            query = query.where(getattr(Port, name).in_(many(params[name])))
    rows = [row for row in call.session.scalars(query) if _may_see(call, row)]
    if "fixed_ips" in params:
        wanted = [each.partition("=")[::2] for each in many(params["fixed_ips"])]
        rows = [row for row in rows if _has_addresses(row, wanted)]
    return collection(call, "ports", [view(call, row) for row in rows])


def _has_addresses(row: Port, wanted: list[tuple[str, str]]) -> bool:
    for name in {name for name, _ in wanted}:
        values = [value for each, value in wanted if each == name]
        if name == "ip_address_substr":
            matches = any(value in each.ip_address for each in row.fixed_ips for value in values)
        elif name in ("ip_address", "subnet_id"):
            matches = any(getattr(each, name) in values for each in row.fixed_ips)
        else:
            raise bad_request(f"Ports can't be filtered by fixed_ips={name}.")
        if not matches:
            return False
    return True


def show(call: Call, port_id: str) -> Json:
    return one(call, "port", view(call, find(call, port_id)))


def create(call: Call) -> Json:
    document = call.body()
    if "ports" in document:
        return {"ports": [view(call, _make(call, given)) for given in attributes.objects("ports", document["ports"])]}
    return {"port": view(call, _make(call, networks.call_object(document, "port")))}


def _make(call: Call, given: Json) -> Port:
    network = networks.find(call, given.get("network_id"))
    _check_rights(call, given)
    if network.external and not network.shared and not call.caller.owns(network.project_id):
        raise forbidden("Ports on an external network are made by its own project.")
    row = Port(
        id=new_id(),
        name="",
        description="",
        dns_name="",
        device_id="",
        device_owner="",
        project_id=attributes.project_of(call, given),
        network_id=network.id,
        mac_address=_mac(call, network, given.get("mac_address")),
        admin_state_up=True,
        status="DOWN",
        port_security_enabled=network.port_security_enabled,
        propagate_uplink_status=True,
        vnic_type="normal",
        security_groups=[],
        allowed_address_pairs=[],
        extra_dhcp_opts=[],
        tags=[],
        revision=1,
    )
    row.fixed_ips = addresses.allot(call.session, network, given.get("fixed_ips"), [])
    _set(call, row, given)
    if row.port_security_enabled and given.get("security_groups") is None:
        row.security_groups = [security_groups.default_group(call.session, row.project_id).id]
    binding.move(call.cloud, row, str(given.get("binding:host_id") or ""))
    _set_profile(row, given)
    call.session.add(row)
    call.session.flush()
    _set_hints(call, row, given)
    if given.get("qos_policy_id"):
        qos.associate(call, row.id, given["qos_policy_id"])
    call.cloud.plugger.reconcile(call.after_commit, row, None)
    return row


def update(call: Call, port_id: str) -> Json:
    row = find(call, port_id)
    if not call.caller.owns(row.project_id):
        raise forbidden("The port belongs to another project.")
    given = call.body("port")
    _check_rights(call, given)
    attributes.require_revision(call, row.revision)
    before, groups_before = call.cloud.plugger.signature(row), list(row.security_groups)
    _set(call, row, given)
    if row.security_groups != groups_before:
        call.cloud.plugger.notify(call.after_commit, row, "network-changed")
    if given.get("mac_address") and attributes.mac(given["mac_address"]) != row.mac_address:
        call.require_privileged()
        row.mac_address = _mac(call, call.session.get_one(Network, row.network_id), given["mac_address"])
    if "fixed_ips" in given:
        network = call.session.get_one(Network, row.network_id)
        addresses_before = [each.ip_address for each in row.fixed_ips]
        # The old rows go first, so that an address may change hands within one request.
        row.fixed_ips = addresses.allot(call.session, network, given["fixed_ips"] or [], row.fixed_ips)
        if [each.ip_address for each in row.fixed_ips] != addresses_before:
            call.cloud.plugger.notify(call.after_commit, row, "network-changed")
    if "binding:host_id" in given:
        binding.move(call.cloud, row, str(given["binding:host_id"] or ""))
    _set_profile(row, given)
    if "qos_policy_id" in given:
        qos.associate(call, row.id, given["qos_policy_id"])
    _set_hints(call, row, given)
    row.revision += 1
    row.updated_at = now()
    call.cloud.plugger.reconcile(call.after_commit, row, before)
    # What is new of the port gets its defaults.
    call.session.flush()
    return {"port": view(call, row)}


def delete(call: Call, port_id: str) -> None:
    row = find(call, port_id)
    if not call.caller.owns(row.project_id):
        raise forbidden("The port belongs to another project.")
    if row.device_owner.startswith("compute:") and not call.caller.is_privileged and row.device_id:
        raise forbidden("A port of a server is deleted through Compute.")
    if row.device_owner.startswith("network:router") or row.device_owner == "network:floatingip":
        raise conflict(
            f"Port {row.id} cannot be deleted directly: it belongs to {row.device_owner}.", "ServicePortInUse"
        )
    remove(call, row)


def remove(call: Call, row: Port) -> None:
    for floating_ip in call.session.scalars(select(FloatingIp).where(FloatingIp.port_id == row.id)):
        floating_ip.port_id = floating_ip.fixed_ip_address = floating_ip.router_id = None
    call.cloud.plugger.notify(call.after_commit, row, "network-vif-deleted")
    qos.associate(call, row.id, None)
    hints = call.session.get(PortHints, row.id)
    if hints is not None:
        call.session.delete(hints)
    call.session.delete(row)
    call.after_commit.append(call.cloud.plugger.notice_change)


def _check_rights(call: Call, given: Json) -> None:
    attributes.refuse_unknown(given, KNOWN)
    if call.caller.is_privileged:
        return
    for name in PRIVILEGED:
        if given.get(name):
            raise forbidden(f"rule:update_port:{name} is disallowed by policy")


def _set(call: Call, row: Port, given: Json) -> None:
    for name in ("name", "description", "device_id", "device_owner", "dns_name"):
        if name in given:
            setattr(row, name, attributes.text(name, given[name] or ""))
    for name in ("admin_state_up", "port_security_enabled", "propagate_uplink_status"):
        if given.get(name) is not None:
            setattr(row, name, attributes.boolean(name, given[name]))
    for name in ("allowed_address_pairs", "extra_dhcp_opts"):
        if name in given:
            setattr(row, name, attributes.objects(name, given[name]))
    if given.get("binding:vnic_type"):
        if given["binding:vnic_type"] not in VNIC_TYPES:
            raise bad_request(f"Invalid input for binding:vnic_type. Reason: '{given['binding:vnic_type']}'.")
        row.vnic_type = given["binding:vnic_type"]
    if given.get("security_groups") is not None:
        row.security_groups = security_groups.checked(call, given["security_groups"])
        if row.security_groups and not row.port_security_enabled:
            raise conflict("Port security must be enabled for security groups.", "PortSecurityPortHasSecurityGroup")


def _set_hints(call: Call, row: Port, given: Json) -> None:
    if "numa_affinity_policy" not in given and "trusted" not in given:
        return
    hints = call.session.get(PortHints, row.id)
    if hints is None:
        hints = PortHints(port_id=row.id, numa_affinity_policy=None, trusted=None)
        call.session.add(hints)
    if "numa_affinity_policy" in given:
        policy = given["numa_affinity_policy"]
        if policy not in (None, *NUMA_POLICIES):
            raise bad_request(f"Invalid input for numa_affinity_policy. Reason: '{policy}'.")
        hints.numa_affinity_policy = policy
    if "trusted" in given:
        hints.trusted = None if given["trusted"] is None else attributes.boolean("trusted", given["trusted"])


def _set_profile(row: Port, given: Json) -> None:
    active = row.active_binding
    if active is not None and "binding:profile" in given:
        active.profile = attributes.mapping("binding:profile", given["binding:profile"])
    if active is not None:
        active.vnic_type = row.vnic_type


def _mac(call: Call, network: Network, wanted: Any) -> str:
    if not wanted:
        return addresses.new_mac(call.session, network.id)
    mac = attributes.mac(wanted)
    if addresses.mac_in_use(call.session, network.id, mac):
        raise conflict(
            f"Unable to complete operation for network {network.id}. The mac address {mac} is in use.",
            "MacAddressInUse",
        )
    return mac
