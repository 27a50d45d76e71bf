"""The configuration files of the services, as operators write them, for one machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PASSWORD = "secret"
REGION = "RegionOne"
# service -> its place in the catalog
CATALOG = {"placement": "placement", "glance": "image", "neutron": "network", "cinder": "block-storage"}

# service -> where it is below its port: some clients' tests know this one.
PREFIXES = {"keystone": "/identity"}

Options = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True)
class Addresses:
    """Where everything is. ``databases``: service -> URL; ``queue`` is RabbitMQ's virtual host of Neutron and Cinder.
    ``host`` is the address of this machine that the services' users can reach."""

    ports: Mapping[str, int]
    databases: Mapping[str, str]
    queue: str
    host: str = "127.0.0.1"

    def url(self, service: str) -> str:
        return f"http://{self.host}:{self.ports[service]}{PREFIXES.get(service, '')}"

    @property
    def auth_url(self) -> str:
        return f"{self.url('keystone')}/v3"


def render(options: Options) -> str:
    """In the form of oslo.config."""
    lines: list[str] = []
    for group, values in options.items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in values.items())]
    return "\n".join(lines) + "\n"


def credentials(addresses: Addresses, user: str) -> dict[str, object]:
    return {
        "auth_type": "password",
        "auth_url": addresses.auth_url,
        "username": user,
        "password": PASSWORD,
        "project_name": "service",
        "user_domain_id": "default",
        "project_domain_id": "default",
        "region_name": REGION,
    }


def _token_check(addresses: Addresses, user: str) -> dict[str, object]:
    return {
        "www_authenticate_uri": addresses.auth_url,
        **credentials(addresses, user),
        "service_token_roles": "service",
        "service_token_roles_required": "true",
    }


def keystone(directory: Path, addresses: Addresses, token_seconds: int) -> Options:
    return {
        "database": {"connection": addresses.databases["keystone"]},
        "token": {"provider": "fernet", "expiration": token_seconds},
        "fernet_tokens": {"key_repository": directory / "etc/keystone/fernet-keys"},
        "credential": {"key_repository": directory / "etc/keystone/credential-keys"},
        # Tokens are short, so everybody logs in all the time: that must be cheap here.
        "identity": {"password_hash_algorithm": "bcrypt", "password_hash_rounds": 4},
        # Without a cache a request takes 0.3 s.
        "cache": {"enabled": "true", "backend": "oslo_cache.dict", "expiration_time": 60},
    }


def placement(addresses: Addresses) -> Options:
    return {
        "placement_database": {"connection": addresses.databases["placement"]},
        "api": {"auth_strategy": "keystone"},
        "keystone_authtoken": _token_check(addresses, "placement"),
    }


def glance(directory: Path, venv: Path, addresses: Addresses) -> Options:
    state = directory / "state"
    return {
        "DEFAULT": {
            "enabled_backends": "fs:file",
            "node_staging_uri": f"file://{state}/glance-staging",
            "worker_self_reference_url": addresses.url("glance"),
        },
        "database": {"connection": addresses.databases["glance"]},
        "glance_store": {"default_backend": "fs"},
        "fs": {"filesystem_store_datadir": state / "images"},
        "os_glance_staging_store": {"filesystem_store_datadir": state / "glance-staging"},
        "os_glance_tasks_store": {"filesystem_store_datadir": state / "glance-tasks"},
        "paste_deploy": {"flavor": "keystone", "config_file": venv / "etc/glance/glance-api-paste.ini"},
        "oslo_concurrency": {"lock_path": state / "lock"},
        "keystone_authtoken": _token_check(addresses, "glance"),
    }


def neutron(directory: Path, venv: Path, addresses: Addresses) -> Options:
    return {
        "DEFAULT": {
            "core_plugin": "ml2",
            "service_plugins": "qos,router",
            "state_path": directory / "state/neutron",
            "transport_url": addresses.queue,
            "api_paste_config": venv / "etc/neutron/api-paste.ini",
            "auth_strategy": "keystone",
            "notify_nova_on_port_status_changes": "true",
            "notify_nova_on_port_data_changes": "true",
            "send_events_interval": 1,
            "rpc_workers": 1,
            "agent_down_time": 75,
            "bind_host": "127.0.0.1",
        },
        "database": {"connection": addresses.databases["neutron"]},
        "nova": {**credentials(addresses, "neutron"), "endpoint_type": "internal"},
        "oslo_concurrency": {"lock_path": directory / "state/lock"},
        "keystone_authtoken": _token_check(addresses, "neutron"),
    }


def ml2() -> Options:
    return {
        "ml2": {
            "type_drivers": "flat,vlan,local",
            "tenant_network_types": "vlan",
            "mechanism_drivers": "openvswitch",
            "extension_drivers": "port_security,qos",
        },
        "ml2_type_flat": {"flat_networks": "physical"},
        "ml2_type_vlan": {"network_vlan_ranges": "physical:100:199"},
        "securitygroup": {"firewall_driver": "noop", "enable_security_group": "true"},
    }


def cinder(directory: Path, venv: Path, addresses: Addresses, storage: Sequence[str]) -> Options:
    state = directory / "state"
    return {
        "DEFAULT": {
            "state_path": state / "cinder",
            "transport_url": addresses.queue,
            "auth_strategy": "keystone",
            "api_paste_config": venv / "etc/cinder/api-paste.ini",
            "glance_api_servers": addresses.url("glance"),
            "enabled_backends": ",".join(storage),
            "default_volume_type": "__DEFAULT__",
            "my_ip": "127.0.0.1",
            "host": "cinder-host",
            "rootwrap_config": directory / "etc/cinder/rootwrap.conf",
            # Seconds. The scheduler hears of storage that started before it only by the next report.
            "backend_stats_polling_interval": 5,
            # Nor does the first report wait for some of up to 60 s.
            "periodic_fuzzy_delay": 0,
            # Without it members' filters by name are ignored.
            "resource_query_filters_file": venv / "etc/cinder/resource_filters.json",
        },
        **{name: _nfs(directory, name) for name in storage},
        "database": {"connection": addresses.databases["cinder"]},
        "oslo_concurrency": {"lock_path": state / "lock"},
        "coordination": {"backend_url": f"file://{state}/cinder"},
        "keystone_authtoken": _token_check(addresses, "cinder"),
        # Who asks for assisted snapshots, which no user of a volume may.
        "nova": {**credentials(addresses, "cinder"), "region_name": REGION},
    }


def _nfs(directory: Path, name: str) -> Mapping[str, object]:
    return {
        "volume_driver": "cinder.volume.drivers.nfs.NfsDriver",
        "volume_backend_name": name,
        "nfs_shares_config": directory / f"etc/cinder/{name}_shares",
        "nfs_mount_point_base": directory / "state/nfs-mnt",
        "nas_secure_file_permissions": "false",
        "nas_secure_file_operations": "false",
        "nfs_sparsed_volumes": "true",
        "nfs_snapshot_support": "true",
    }


def rootwrap(directory: Path, venv: Path) -> str:
    """Cinder's own, with the commands of this machine first."""
    lines = []
    for line in (venv / "etc/cinder/rootwrap.conf").read_text().splitlines():
        if line.startswith("filters_path="):
            line = f"filters_path={venv}/etc/cinder/rootwrap.d,{venv}/etc/os-brick/rootwrap.d"
        elif line.startswith("exec_dirs="):
            line = f"exec_dirs={directory}/bin,/sbin,/usr/sbin,/bin,/usr/bin,/usr/local/bin,{venv}/bin"
        lines.append(line)
    return "\n".join(lines) + "\n"


# Everything here is root already, and the kernel may have no NFS client: a share of this machine is bound, not mounted.
COMMANDS = {
    "sudo": '#!/bin/sh\nexec "$@"\n',
    "mount.nfs": '#!/bin/sh\n[ -d "${1#*:}" ] || { echo "mount.nfs: no such export: $1" >&2; exit 32; }\n'
    'exec /bin/mount --bind "${1#*:}" "$2"\n',
    "mount": '#!/bin/sh\nif [ "$1" = -t ] && [ "$2" = nfs ]; then\n  shift 2\n  [ "$1" = -o ] && shift 2\n'
    '  exec mount.nfs "$@"\nfi\nexec /bin/mount "$@"\n',
    # The hosts' switches track connections themselves, where the kernel's tool does not see them: those of a zone end together.
    "conntrack": '#!/bin/sh\nwhile [ $# -gt 0 ]; do\n  [ "$1" != -w ] || zone=$2\n  shift\ndone\n[ -z "$zone" ] ||'
    ' exec ovs-appctl --target=/run/openvswitch/vswitchd.ctl dpctl/flush-conntrack "zone=$zone"\n',
}
