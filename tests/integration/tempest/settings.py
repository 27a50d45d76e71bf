"""tempest.conf for a running deployment, and what the tests find in it: flavors, images, an external network."""

from __future__ import annotations

from pathlib import Path

from tests.functional.processes.deployment import Deployment
from tests.integration.real_services.configuration import PASSWORD, REGION, render
from tests.integration.tempest.guests import GuestsBehindRouters
from tests.integration.tempest.stack import ENABLED_FILTERS, Cloud


def prepare(cloud: Cloud | GuestsBehindRouters, directory: Path) -> Path:
    """Makes what Tempest wants to be there; returns its configuration file."""
    real = isinstance(cloud, GuestsBehindRouters)
    outside = cloud.outside if isinstance(cloud, GuestsBehindRouters) else "192.0.2"
    # What a guest is made of, or anything.
    file = cloud.guest_image().path if isinstance(cloud, GuestsBehindRouters) else directory / "disk.img"
    if not real:
        file.write_bytes(bytes(4096))
    contents = {"disk_format": "qcow2" if real else "raw", "container_format": "bare"}
    with cloud.services.connection(project="admin") as admin:
        flavors = [
            admin.compute.create_flavor(name=f"tempest-{vcpus}", vcpus=vcpus, ram=128 * vcpus, disk=vcpus).id
            for vcpus in (1, 2)
        ]
        images = [
            admin.image.create_image(
                name=name,
                visibility="public",
                data=file.read_bytes() if real else name.encode().ljust(4096, b"\0"),
                **contents,
                **({} if real else {"hw_qemu_guest_agent": "yes"}),
            ).id
            for name in ("tempest", "tempest-other")
        ]
        network = admin.network.create_network(
            name="public", is_router_external=True, provider_network_type="flat", provider_physical_network="physical"
        )
        admin.network.create_subnet(network_id=network.id, ip_version=4, cidr=f"{outside}.0/24", is_dhcp_enabled=False)
    options = _options(cloud, cloud.services.addresses.auth_url, directory, flavors, images, network.id)
    options["scenario"] = {
        "img_file": file,
        "img_disk_format": contents["disk_format"],
        "img_container_format": "bare",
        # What guests of ours keep.
        "target_dir": "/disk",
    }
    if real:
        options["validation"] = LOGIN
        options["compute"]["hypervisor_type"] = "QEMU"
        # Routers announce them.
        options["network-feature-enabled"]["ipv6_subnet_attributes"] = "true"
    features = options["compute-feature-enabled"]
    features |= dict.fromkeys(ONLY_REAL, str(real)) | dict.fromkeys(ONLY_SIMULATED, str(not real))
    configured = directory / "tempest.conf"
    configured.write_text(render(options))
    return configured


def _options(
    cloud: Deployment, auth_url: str, directory: Path, flavors: list[str], images: list[str], public_network: str
) -> dict[str, dict[str, object]]:
    features: dict[str, object] = {"scheduler_enabled_filters": ",".join(ENABLED_FILTERS)}
    features |= dict.fromkeys(THERE, "true") | dict.fromkeys(NOT_YET, "false")
    # A live migration stays in its cell: where there are several, Tempest leaves the choice of the host to the scheduler.
    features["can_migrate_between_any_hosts"] = "true" if len(set(cloud.hosts.values())) == 1 else "false"
    return {
        "DEFAULT": {"log_file": directory / "tempest.log", "debug": "true"},
        "oslo_concurrency": {"lock_path": directory / "lock"},
        "auth": {
            "use_dynamic_credentials": "true",
            "admin_username": "admin",
            "admin_password": PASSWORD,
            "admin_project_name": "admin",
            "admin_domain_name": "Default",
        },
        "identity": {"uri_v3": auth_url, "auth_version": "v3", "region": REGION},
        "identity-feature-enabled": {"api_v2": "false", "api_v3": "true"},
        "service_available": {"swift": "false", "horizon": "false"},
        "compute": {
            "image_ref": images[0],
            "image_ref_alt": images[1],
            "flavor_ref": flavors[0],
            "flavor_ref_alt": flavors[1],
            "min_compute_nodes": len(cloud.hosts),
            "hypervisor_type": "simulated",
            "min_microversion": "2.1",
            "max_microversion": "latest",
            "build_timeout": 120,
        },
        "compute-feature-enabled": features,
        # Guests of simulated hosts have nothing to log in to.
        "validation": {"run_validation": "false"},
        "image": {"build_timeout": 120},
        "network": {"public_network_id": public_network, "build_timeout": 120},
        "network-feature-enabled": {"floating_ips": "true", "port_security": "true", "ipv6": "true"},
        "volume": {
            "catalog_type": "block-storage",
            "min_microversion": "3.0",
            "max_microversion": "latest",
            "storage_protocol": "nfs",
            "vendor_name": "Open Source",
            "build_timeout": 120,
        },
        "volume-feature-enabled": {"backup": "false", "snapshot": "true"},
        "placement": {"min_microversion": "1.0", "max_microversion": "latest"},
    }


# Emulated guests boot slowly.
LOGIN: dict[str, object] = {
    "run_validation": "true",
    "connect_method": "floating",
    "auth_method": "keypair",
    "image_ssh_user": "root",
    "image_alt_ssh_user": "root",
    "ssh_timeout": 240,
    "ping_timeout": 240,
    "connect_timeout": 30,
    "network_for_ssh": "public",
    # Seconds in a live migration; what the emulator needs for a guest's last pages counts, on a machine that does much else.
    "allowed_network_downtime": 20,
}
# Groups compute-feature-enabled: what this cloud does, and what not
THERE = (
    "disk_config",
    "hostname_fqdn_sanitization",
    "console_output",
    "resize",
    "pause",
    "shelve",
    "shelve_migrate",
    "suspend",
    "cold_migration",
    "live_migration",
    "block_migration_for_live_migration",
    "volume_backed_live_migration",
    "enable_instance_password",
    "interface_attach",
    "snapshot",
    "personality",
    "config_drive",
    "rescue",
    "stable_rescue",
    "serial_console",
    "swap_volume",
)
# What only real guests have, and only simulated ones: an agent that sets passwords.
ONLY_REAL = ("metadata_service", "vnc_console", "ide_bus")
ONLY_SIMULATED = ("change_password",)
NOT_YET = (
    "spice_console",
    # The volume service's NFS driver has neither.
    "volume_multiattach",
    "attach_encrypted_volume",
    # The identity service's limits are not asked.
    "unified_limits",
)
