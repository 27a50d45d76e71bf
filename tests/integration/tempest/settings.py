"""tempest.conf for a running deployment, and what the tests find in it: flavors, images, an external network."""

from __future__ import annotations

from pathlib import Path

from tests.integration.real_services.configuration import PASSWORD, REGION, Options, render
from tests.integration.tempest.stack import ENABLED_FILTERS, Cloud


def prepare(cloud: Cloud, directory: Path) -> Path:
    """Makes what Tempest wants to be there; returns its configuration file."""
    with cloud.services.connection(project="admin") as admin:
        flavors = [
            admin.compute.create_flavor(name=f"tempest-{vcpus}", vcpus=vcpus, ram=128 * vcpus, disk=vcpus).id
            for vcpus in (1, 2)
        ]
        images = [
            admin.image.create_image(
                name=name,
                disk_format="raw",
                container_format="bare",
                visibility="public",
                data=name.encode().ljust(4096, b"\0"),
            ).id
            for name in ("tempest", "tempest-other")
        ]
        network = admin.network.create_network(
            name="public", is_router_external=True, provider_network_type="flat", provider_physical_network="physical"
        )
        admin.network.create_subnet(network_id=network.id, ip_version=4, cidr="192.0.2.0/24", is_dhcp_enabled=False)
    (directory / "disk.img").write_bytes(bytes(4096))
    file = directory / "tempest.conf"
    file.write_text(render(_options(cloud, directory, flavors, images, network.id)))
    return file


def _options(cloud: Cloud, directory: Path, flavors: list[str], images: list[str], public_network: str) -> Options:
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
        "identity": {"uri_v3": cloud.services.addresses.auth_url, "auth_version": "v3", "region": REGION},
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
        "scenario": {"img_file": directory / "disk.img", "img_disk_format": "raw", "img_container_format": "bare"},
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
)
NOT_YET = (
    "change_password",
    "spice_console",
    # Simulated hosts have no screens, and no proxy of consoles is started beside them.
    "vnc_console",
    "serial_console",
    "swap_volume",
    # The volume service's NFS driver has neither.
    "volume_multiattach",
    "attach_encrypted_volume",
    # The identity service's limits are not asked.
    "unified_limits",
    # Guests of simulated hosts have no such thing.
    "ide_bus",
    "metadata_service",
)
