"""The tables of Nova that are read, with the columns that matter. A release may lack some of them.

Types are those of what is read: Nova keeps booleans as numbers, and JSON as text.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

_TIMES = frozenset(
    {
        "created_at", "updated_at", "deleted_at", "launched_at", "terminated_at", "start_time", "finish_time",
        "last_seen_up",
    }
)  # fmt: skip


# What every table has whose rows Nova marks as deleted.
_OF_LASTING_ROWS = ("created_at", "updated_at", "deleted_at")


def _table(name: str, *columns: str) -> sa.TableClause:
    if "deleted" in columns:
        columns = tuple(dict.fromkeys((*columns, *_OF_LASTING_ROWS)))
    typed: list[sa.ColumnClause[Any]] = [
        sa.column(column, sa.DateTime if column in _TIMES else None) for column in columns
    ]
    return sa.table(name, *typed)


# The API database

CELL_MAPPINGS = _table("cell_mappings", "id", "uuid", "name", "database_connection", "disabled")
HOST_MAPPINGS = _table("host_mappings", "id", "cell_id", "host")
INSTANCE_MAPPINGS = _table(
    "instance_mappings", "id", "instance_uuid", "cell_id", "project_id", "user_id", "queued_for_delete", "created_at",
)  # fmt: skip
REQUEST_SPECS = _table("request_specs", "id", "instance_uuid", "spec", "created_at")
BUILD_REQUESTS = _table("build_requests", "id", "instance_uuid", "project_id", "created_at")
FLAVORS = _table(
    "flavors", "id", "flavorid", "name", "vcpus", "memory_mb", "root_gb", "ephemeral_gb", "swap", "rxtx_factor",
    "is_public", "disabled", "description", "created_at", "updated_at",
)  # fmt: skip
FLAVOR_EXTRA_SPECS = _table("flavor_extra_specs", "id", "flavor_id", "key", "value")
FLAVOR_PROJECTS = _table("flavor_projects", "id", "flavor_id", "project_id")
KEY_PAIRS = _table("key_pairs", "id", "user_id", "name", "type", "public_key", "fingerprint", "created_at")
AGGREGATES = _table("aggregates", "id", "uuid", "name", "created_at", "updated_at")
AGGREGATE_METADATA = _table("aggregate_metadata", "id", "aggregate_id", "key", "value")
AGGREGATE_HOSTS = _table("aggregate_hosts", "id", "aggregate_id", "host")
INSTANCE_GROUPS = _table("instance_groups", "id", "uuid", "name", "project_id", "user_id", "created_at")
INSTANCE_GROUP_POLICY = _table("instance_group_policy", "id", "group_id", "policy", "rules")
INSTANCE_GROUP_MEMBER = _table("instance_group_member", "id", "group_id", "instance_uuid")
QUOTAS = _table("quotas", "id", "project_id", "resource", "hard_limit")
PROJECT_USER_QUOTAS = _table("project_user_quotas", "id", "project_id", "user_id", "resource", "hard_limit")
QUOTA_CLASSES = _table("quota_classes", "id", "class_name", "resource", "hard_limit")

# The databases of cells

INSTANCES = _table(
    "instances", "id", "uuid", "user_id", "project_id", "image_ref", "kernel_id", "ramdisk_id", "launch_index",
    "key_name", "key_data", "power_state", "vm_state", "task_state", "memory_mb", "vcpus", "root_gb", "ephemeral_gb",
    "hostname", "host", "node", "compute_id", "user_data", "reservation_id", "launched_at", "terminated_at",
    "display_name", "display_description", "availability_zone", "locked", "locked_by", "os_type", "vm_mode",
    "architecture", "root_device_name", "access_ip_v4", "access_ip_v6", "config_drive", "progress",
    "auto_disk_config", "instance_type_id", "hidden", "cleaned", "deleted", "created_at", "updated_at", "deleted_at",
)  # fmt: skip
INSTANCE_EXTRA = _table(
    "instance_extra", "id", "instance_uuid", "flavor", "numa_topology", "pci_requests", "keypairs",
    "migration_context", "trusted_certs", "vpmems", "resources", "created_at", "deleted", "deleted_at",
)  # fmt: skip
INSTANCE_SYSTEM_METADATA = _table(
    "instance_system_metadata", "id", "instance_uuid", "key", "value", "created_at", "deleted",
)  # fmt: skip
INSTANCE_METADATA = _table(
    "instance_metadata", "id", "instance_uuid", "key", "value", "created_at", "deleted", "deleted_at",
)  # fmt: skip
INSTANCE_INFO_CACHES = _table(
    "instance_info_caches", "id", "instance_uuid", "network_info", "created_at", "updated_at", "deleted", "deleted_at",
)  # fmt: skip
VIRTUAL_INTERFACES = _table(
    "virtual_interfaces", "id", "instance_uuid", "uuid", "address", "tag", "created_at", "deleted", "deleted_at",
)  # fmt: skip
TAGS = _table("tags", "resource_id", "tag")
BLOCK_DEVICE_MAPPING = _table(
    "block_device_mapping", "id", "uuid", "instance_uuid", "source_type", "destination_type", "boot_index",
    "device_name", "volume_id", "volume_size", "volume_type", "snapshot_id", "image_id", "connection_info",
    "attachment_id", "delete_on_termination", "tag", "disk_bus", "device_type", "guest_format", "no_device",
    "encrypted", "created_at", "deleted", "deleted_at",
)  # fmt: skip
INSTANCE_ACTIONS = _table(
    "instance_actions", "id", "action", "instance_uuid", "request_id", "user_id", "project_id", "start_time",
    "created_at", "updated_at", "finish_time", "message", "deleted",
)  # fmt: skip
INSTANCE_ACTIONS_EVENTS = _table(
    "instance_actions_events", "id", "action_id", "event", "start_time", "finish_time", "result", "traceback", "host",
    "details", "created_at", "deleted",
)  # fmt: skip
INSTANCE_FAULTS = _table(
    "instance_faults", "id", "instance_uuid", "code", "message", "details", "host", "created_at", "deleted", "deleted_at",
)  # fmt: skip
MIGRATIONS = _table(
    "migrations", "id", "uuid", "instance_uuid", "migration_type", "status", "source_compute", "source_node",
    "dest_compute", "dest_node", "dest_host", "old_instance_type_id", "new_instance_type_id", "cross_cell_move",
    "hidden", "user_id", "project_id", "memory_total", "memory_processed", "memory_remaining", "disk_total",
    "disk_processed", "disk_remaining", "created_at", "updated_at", "deleted", "deleted_at",
)  # fmt: skip
SERVICES = _table(
    "services", "id", "uuid", "host", "binary", "topic", "version", "disabled", "disabled_reason", "forced_down",
    "last_seen_up", "created_at", "updated_at", "deleted",
)  # fmt: skip
COMPUTE_NODES = _table(
    "compute_nodes", "id", "uuid", "host", "hypervisor_hostname", "hypervisor_type", "numa_topology", "deleted",
)  # fmt: skip
PCI_DEVICES = _table(
    "pci_devices", "id", "compute_node_id", "address", "vendor_id", "product_id", "dev_type", "numa_node",
    "parent_addr", "label", "status", "instance_uuid", "request_id", "extra_info", "deleted",
)  # fmt: skip
SHARE_MAPPING = _table("share_mapping", "id", "instance_uuid", "share_id")
