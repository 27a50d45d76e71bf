"""What users of the matrix leave behind."""

from __future__ import annotations

from tests.faults.clouds.site import LocalSite
from tests.faults.moves.users import delete_ports


def test_ports_that_no_server_has_are_deleted_and_others_stay(local_site: LocalSite) -> None:
    network, direct = local_site.member.network, {"network_id": local_site.network_id, "binding_vnic_type": "direct"}
    unused, used = network.create_port(**direct), network.create_port(**direct, device_id="a server")
    delete_ports(local_site)
    assert {port.id for port in network.ports()} & {unused.id, used.id} == {used.id}
    network.delete_port(used.id)
