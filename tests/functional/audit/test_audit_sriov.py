"""The audit of ports that need a device: their bindings name those that their servers hold."""

from __future__ import annotations

from typing import Any

from causeway.context import admin_context
from tests.functional.servers import sriov_cloud
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.sriov_cloud import FUNCTIONS, boot, profile_of, profile_on

CLOUD = sriov_cloud.CLOUD
networks, ports = sriov_cloud.networks, sriov_cloud.ports


def test_a_binding_that_names_another_device_is_corrected(cloud: AuditedCloud, ports: Any) -> None:
    port = ports(binding_profile={"trusted": "true"})
    boot(cloud, port)
    right = profile_of(cloud, port)
    wrong = right | {"pci_slot": FUNCTIONS[2]}
    cloud.parts.around.network.update_port(admin_context(), port.id, {"binding:profile": wrong})
    assert FUNCTIONS[2] in cloud.only("binding.device").message
    cloud.fixes("binding.device")
    assert profile_of(cloud, port) == right


def test_the_binding_that_is_kept_for_a_revert_names_the_sources_device(cloud: AuditedCloud, ports: Any) -> None:
    port = ports()
    server = boot(cloud, port)
    source, before = cloud.show(server).compute_host, profile_of(cloud, port)
    cloud.resized(server)
    cloud.settle()
    cloud.parts.around.network.delete_binding(admin_context(), port.id, source)
    cloud.only("binding.missing")
    cloud.fixes("binding.missing")
    assert profile_on(cloud, port, source) == before
    cloud.reverted(server)
    assert profile_of(cloud, port) == before
