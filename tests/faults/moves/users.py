"""What users do: they make servers, move them, and are answered."""

from __future__ import annotations

from functools import partial
from typing import Any

from causeway.model.states import VmState
from tests.faults.answers import Answer, answer_of
from tests.faults.clouds.site import Site, until
from tests.faults.moves import drained, look
from tests.faults.moves.flows import Flow


def boot(site: Site, flow: Flow, count: int) -> list[str]:
    fields: dict[str, Any] = {"image_id": site.image_id}
    if flow.backing == "volume":
        fields = {"block_device_mapping": [site.root_volume()]}
    made = [
        site.member.compute.create_server(
            name=f"server{number}", flavor_id=flow.flavors[0], networks=[_network(site, flow)], **fields
        ).id
        for number in range(count)
    ]
    for uuid in made:
        wait(site, uuid, VmState.ACTIVE)
        # Users see the server before its build is written down as ended.
        assert until(partial(look.is_settled, site, uuid), bool)
        site.guests.mark(uuid, mark(uuid))
    return made


def _network(site: Site, flow: Flow) -> dict[str, str]:
    """Where NUMA cells are claimed a device for a port is, too."""
    if flow.backing != "numa" or site.driver != "simulated":
        return {"uuid": site.network_id}
    port = site.member.network.create_port(network_id=site.network_id, binding_vnic_type="direct")
    return {"port": port.id}


def delete_ports(site: Site) -> None:
    """Deletes the ports that no server has any more: users' own ports outlive their servers, and addresses would run out."""
    for port in list(site.member.network.ports(binding_vnic_type="direct")):
        if not port.device_id:
            site.member.network.delete_port(port.id)


def mark(uuid: str) -> str:
    return f"data of {uuid}"


def wait(site: Site, uuid: str, state: VmState) -> None:
    found = until(
        lambda: look.record(site, uuid),
        lambda found: found is not None and found.vm_state in (state, VmState.ERROR) and found.task_state is None,
    )
    assert found is not None and found.vm_state is state, site.admin.compute.get_server(uuid)


def ask(site: Site, flow: Flow, operation: str, uuid: str, *, flavor: str | None = None) -> Answer:
    """Asks for the operation as a user, or for a drain as an administrator."""
    if operation == "drain":
        return drained.begin(site, flow, uuid)
    if operation == "drain-back":
        return drained.roll_back(site, uuid)
    compute = site.member.compute
    return answer_of(
        {
            "resize": lambda: compute.resize_server(uuid, flavor or flow.flavors[1]),
            "confirm": lambda: compute.confirm_server_resize(uuid),
            "revert": lambda: compute.revert_server_resize(uuid),
        }[operation]
    )


def prepare(site: Site, flow: Flow, count: int) -> list[str]:
    servers = boot(site, flow, count)
    if flow.operation == "drain-back":
        for uuid in servers:
            drained.prepare(site, flow, uuid)
    elif flow.operation not in ("resize", "drain"):
        for uuid in servers:
            ask(site, flow, "resize", uuid)
        for uuid in servers:
            wait(site, uuid, VmState.RESIZED)
            until(lambda uuid=uuid: look.is_settled(site, uuid), bool)  # type: ignore[misc]
            if flow.backing == "volume":
                attach(site, uuid)
    return servers


def attach(site: Site, uuid: str) -> None:
    """A volume that only the target knows so far."""
    volume = site.member.block_storage.create_volume(size=1, name=f"data of {uuid}")
    until(lambda: site.member.block_storage.get_volume(volume.id).status, lambda status: status == "available")
    site.member.compute.create_volume_attachment(uuid, volume_id=volume.id, delete_on_termination=True)
