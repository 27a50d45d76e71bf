"""The nova.conf of each of Nova's roles, as operators write them, for one machine with a few hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from causeway.virt.lab.hosts import LibvirtEndpoint
from tests.integration.real_services import configuration, switches
from tests.integration.real_services.configuration import Addresses, Options

# Where each host sees its own files: where they usually are.
STATE_PATH = Path("/var/lib/nova")
# The groups of its helpers, which do what needs root.
HELPERS = ("nova_sys_admin", "vif_plug_ovs_privileged", "vif_plug_linux_bridge_privileged", "privsep_osbrick")
_FILTERS = (
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
    # It ties flavors to cells.
    "AggregateInstanceExtraSpecsFilter",
)


@dataclass(frozen=True)
class NovaFiles:
    """What all roles have in their files. ``queue``: of RabbitMQ, without the virtual host; ``databases``: "api", "cell0", cells.

    ``state``: a folder of those that run on no host. ``host_options``: more of all hosts, by group.
    """

    addresses: Addresses
    databases: Mapping[str, str]
    queue: str
    venv: Path
    etc: Path
    state: Path
    host_options: Mapping[str, Mapping[str, object]]

    def cloud(self) -> Options:
        """Of API, scheduler and super conductor."""
        return {
            "DEFAULT": {
                **self._common(),
                "transport_url": f"{self.queue}/nova",
                "state_path": self.state,
                "host": "controller",
                "my_ip": self.addresses.host,
            },
            "api_database": {"connection": self.databases["api"]},
            "database": {"connection": self.databases["cell0"]},
            "wsgi": {"api_paste_config": self.etc / "api-paste.ini"},
            "scheduler": {"workers": 1},
            "filter_scheduler": {"enabled_filters": ",".join(_FILTERS)},
            "conductor": {"workers": 1},
            **self._around(),
        }

    def conductor(self, cell: str) -> Options:
        """Of a cell's conductor, which does not know the API database."""
        return {
            "DEFAULT": {
                **self._common(),
                "transport_url": f"{self.queue}/nova-{cell}",
                "state_path": self.state,
                "host": f"{cell}-conductor",
                "my_ip": self.addresses.host,
            },
            "database": {"connection": self.databases[cell]},
            "conductor": {"workers": 1},
            **self._around(),
        }

    def compute(self, endpoint: LibvirtEndpoint, cell: str, address: str, path: Path) -> Options:
        """Of a host. ``address``: where it reaches the services; ``path``: of this file, which its helpers read as well."""
        helper = f"{self.venv}/bin/privsep-helper --config-file {path}"
        options: dict[str, dict[str, object]] = {
            "DEFAULT": {
                **self._common(),
                "transport_url": f"{self.queue}/nova-{cell}",
                "state_path": STATE_PATH,
                "host": endpoint.host,
                "my_ip": address,
                "compute_driver": "libvirt.LibvirtDriver",
                "reserved_host_memory_mb": 0,
                # Each host is this machine, which may have two processors, and more servers than usual for those.
                "initial_cpu_allocation_ratio": 16.0,
                # There need be no mkfs.vfat.
                "default_ephemeral_format": "ext4",
                "vif_plugging_timeout": 240,
                "shutdown_timeout": 30,
                # A compute that ends waits for a thread that does not end, for as long as it may: 160 s without these.
                "manager_shutdown_timeout": 5,
                "graceful_shutdown_timeout": 20,
                "sync_power_state_interval": 60,
            },
            "libvirt": {
                "virt_type": "qemu",
                "cpu_mode": "none",
                "connection_uri": endpoint.uri,
                "tb_cache_size": 64,
                "live_migration_inbound_addr": endpoint.address,
                "live_migration_uri": endpoint.control_uri,
                "live_migration_with_native_tls": "true",
            },
            # A cell's conductor does not know the API database.
            "workarounds": {"disable_group_policy_check_upcall": "true"},
            "vnc": {"enabled": "true", "server_listen": address, "server_proxyclient_address": address},
            "os_vif_ovs": {"ovsdb_connection": switches.CONNECTION},
            **{group: {"helper_command": helper} for group in HELPERS},
            **{group: dict(values) for group, values in self._around().items()},
        }
        for group, values in self.host_options.items():
            options.setdefault(group, {}).update(values)
        return options

    def _common(self) -> dict[str, object]:
        return {
            "log_options": "false",
            "rpc_response_timeout": 180,
            "report_interval": 5,
            "service_down_time": 60,
            "reclaim_instance_interval": 86400,
            "allow_resize_to_same_host": "false",
        }

    def _around(self) -> Options:
        own = configuration.credentials(self.addresses, "nova")
        token_check = {
            "www_authenticate_uri": self.addresses.auth_url,
            "service_token_roles": "service",
            "service_token_roles_required": "true",
        }
        return {
            "api": {"auth_strategy": "keystone"},
            "keystone_authtoken": {**own, **token_check},
            "service_user": {**own, "send_service_user_token": "true"},
            "placement": own,
            "glance": {**own, "num_retries": 3},
            "neutron": {**own, "service_metadata_proxy": "false"},
            "cinder": {**own, "os_region_name": configuration.REGION},
            "keystone": own,
            "barbican": own,
            "oslo_concurrency": {"lock_path": "$state_path/tmp"},
            "oslo_policy": {"policy_file": self.etc / "policy.yaml"},
        }
