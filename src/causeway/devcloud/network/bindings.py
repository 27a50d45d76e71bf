"""/v2.0/ports/{id}/bindings: the extended port bindings, which prepare a port on a second host.

Codes as in Network's `binding-extended`: a second binding on the same host is 409, and so is activating the active one. An
activation makes the formerly active binding INACTIVE and unbound. Deleting the active binding is allowed.
"""

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import ApiError, bad_request, conflict, not_found
from causeway.devcloud.network import attributes, binding, ports
from causeway.devcloud.network.listing import collection
from causeway.devcloud.tables.base import now
from causeway.devcloud.tables.network import UNBOUND, Port, PortBinding
from causeway.devcloud.web import Call

KNOWN = frozenset(("host", "vnic_type", "profile", "project_id", "tenant_id"))


def list_bindings(call: Call, port_id: str) -> Json:
    row = _port(call, port_id)
    return collection(call, "bindings", [binding.view(each) for each in row.bindings if each.host])


def show(call: Call, port_id: str, host: str) -> Json:
    return {"binding": binding.view(_find(_port(call, port_id), host))}


def create(call: Call, port_id: str) -> Json:
    port = _port(call, port_id)
    given = call.body("binding")
    attributes.refuse_unknown(given, KNOWN)
    host = given.get("host")
    if not isinstance(host, str) or not host:
        raise bad_request("Failed to parse request. Required attribute 'host' not specified", "HTTPBadRequest")
    if binding.on_host(port, host) is not None:
        raise conflict(f"Binding for port {port.id} on host {host} already exists.", "PortBindingAlreadyExists")
    _require_known_host(call, port, host)
    before = call.cloud.plugger.signature(port)
    row = PortBinding(
        host=host,
        status="INACTIVE" if port.active_binding else "ACTIVE",
        vnic_type=_vnic_type(given) or port.vnic_type,
        profile=attributes.mapping("profile", given.get("profile")),
        vif_details={},
        created_at=now(),
    )
    binding.connect(call.cloud, port, row)
    port.bindings.append(row)
    call.cloud.plugger.reconcile(call.after_commit, port, before)
    return {"binding": binding.view(row)}


def update(call: Call, port_id: str, host: str) -> Json:
    port = _port(call, port_id)
    row = _find(port, host)
    given = call.body("binding")
    attributes.refuse_unknown(given, KNOWN)
    before = call.cloud.plugger.signature(port)
    if given.get("host") not in (None, host):
        wanted = attributes.text("host", given["host"])
        if binding.on_host(port, wanted) is not None:
            raise conflict(f"Binding for port {port.id} on host {wanted} already exists.", "PortBindingAlreadyExists")
        _require_known_host(call, port, wanted)
        port.bindings.remove(row)
        row = PortBinding(
            host=wanted, status=row.status, vnic_type=row.vnic_type, profile=row.profile, created_at=now()
        )
        port.bindings.append(row)
    row.vnic_type = _vnic_type(given) or row.vnic_type
    if "profile" in given:
        row.profile = attributes.mapping("profile", given["profile"])
    binding.connect(call.cloud, port, row)
    call.cloud.plugger.reconcile(call.after_commit, port, before)
    return {"binding": binding.view(row)}


def activate(call: Call, port_id: str, host: str) -> Json:
    port = _port(call, port_id)
    row = _find(port, host)
    if row.status == "ACTIVE":
        raise conflict(f"Binding for port {port.id} on host {host} is already active.", "PortBindingAlreadyActive")
    before = call.cloud.plugger.signature(port)
    former = port.active_binding
    if former is not None and former.host:
        former.status, former.vif_type, former.vif_details = "INACTIVE", UNBOUND, {}
    elif former is not None:
        port.bindings.remove(former)
    row.status = "ACTIVE"
    binding.connect(call.cloud, port, row)
    port.revision += 1
    port.updated_at = now()
    call.cloud.plugger.reconcile(call.after_commit, port, before)
    # Bare, as Neutron answers.
    return binding.view(row)


def delete(call: Call, port_id: str, host: str) -> None:
    port = _port(call, port_id)
    row = _find(port, host)
    before = call.cloud.plugger.signature(port)
    port.bindings.remove(row)
    call.cloud.plugger.reconcile(call.after_commit, port, before)


def _port(call: Call, port_id: str) -> Port:
    call.require_privileged()
    return ports.find(call, port_id)


def _find(port: Port, host: str) -> PortBinding:
    row = binding.on_host(port, host)
    if row is None:
        raise not_found(f"Binding for port {port.id} on host {host} could not be found.", "PortBindingNotFound")
    return row


def _require_known_host(call: Call, port: Port, host: str) -> None:
    if host not in call.cloud.hosts:
        raise ApiError(400, f"Binding for port {port.id} on host {host} could not be created.", "PortBindingError")


def _vnic_type(given: Json) -> str | None:
    vnic_type = given.get("vnic_type")
    if vnic_type is not None and vnic_type not in ports.VNIC_TYPES:
        raise bad_request(f"Invalid input for vnic_type. Reason: '{vnic_type}'.")
    return vnic_type
