"""Schema of a cell database: the servers of one cell, their history, and the cell's hosts."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from causeway.store.columns import Bounded, LongText, Name, TextOfJson, Time, Uuid, keep_all_of_unicode


class CellBase(DeclarativeBase):
    """Base of the tables of a cell database."""

    type_annotation_map = {dict[str, Any]: sa.JSON, list[Any]: sa.JSON, datetime: Time}


class Instances(CellBase):
    """A server; the parts that are never searched for are JSON. See `causeway.model.instance.Instance`."""

    __tablename__ = "instances"
    __table_args__ = (
        sa.Index("instances_listing", "project_id", "deleted", "created_at"),
        sa.Index("instances_host", "host", "deleted"),
        sa.Index("instances_updated", "updated_at"),
        sa.Index("instances_move_source", "move_source_host"),
        sa.Index("instances_move_dest", "move_dest_host"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(Uuid, unique=True)
    project_id: Mapped[str] = mapped_column(Name)
    user_id: Mapped[str] = mapped_column(Name)
    display_name: Mapped[str] = mapped_column(Name)
    display_description: Mapped[str | None] = mapped_column(Name)
    hostname: Mapped[str] = mapped_column(Name)
    reservation_id: Mapped[str] = mapped_column(Bounded(64))
    launch_index: Mapped[int]
    host: Mapped[str | None] = mapped_column(Name)
    node: Mapped[str | None] = mapped_column(Name)
    availability_zone: Mapped[str | None] = mapped_column(Name)
    pinned_availability_zone: Mapped[str | None] = mapped_column(Name)
    vm_state: Mapped[str] = mapped_column(Bounded(32))
    task_state: Mapped[str | None] = mapped_column(Bounded(32))
    power_state: Mapped[int]
    progress: Mapped[int]
    image_ref: Mapped[str] = mapped_column(Name)
    image_meta: Mapped[dict[str, Any] | None]
    kernel_id: Mapped[str] = mapped_column(Name)
    ramdisk_id: Mapped[str] = mapped_column(Name)
    key_name: Mapped[str | None] = mapped_column(Name)
    keypairs: Mapped[list[Any]]
    user_data: Mapped[str | None] = mapped_column(LongText)
    config_drive: Mapped[bool]
    injected_files: Mapped[list[Any]]
    admin_password: Mapped[str | None] = mapped_column(LongText)
    root_device_name: Mapped[str | None] = mapped_column(Bounded(64))
    access_ip_v4: Mapped[str | None] = mapped_column(Bounded(39))
    access_ip_v6: Mapped[str | None] = mapped_column(Bounded(39))
    auto_disk_config: Mapped[bool]
    locked: Mapped[bool]
    locked_by: Mapped[str | None] = mapped_column(Bounded(16))
    locked_reason: Mapped[str | None] = mapped_column(Name)
    flavor: Mapped[dict[str, Any]]
    # The current flavor's id and sizes once more, for filters and quota counts.
    flavorid: Mapped[str] = mapped_column(Name)
    vcpus: Mapped[int]
    memory_mb: Mapped[int]
    old_flavor: Mapped[dict[str, Any] | None]
    new_flavor: Mapped[dict[str, Any] | None]
    old_vm_state: Mapped[str | None] = mapped_column(Bounded(32))
    migration_context: Mapped[dict[str, Any] | None]
    # The hosts of the migration context, to be searched for. The database computes them, whichever release writes the row.
    move_source_host: Mapped[str | None] = mapped_column(
        Name, sa.Computed(TextOfJson("migration_context", "source_host"))
    )
    move_dest_host: Mapped[str | None] = mapped_column(Name, sa.Computed(TextOfJson("migration_context", "dest_host")))
    numa_topology: Mapped[dict[str, Any] | None]
    pci_requests: Mapped[list[Any]]
    pci_devices: Mapped[list[Any]] = mapped_column(server_default="[]")
    trusted_image_certificates: Mapped[list[Any] | None]
    # the attribute "metadata" is taken by the declarative base
    metadata_: Mapped[dict[str, Any]] = mapped_column("metadata")
    system_metadata: Mapped[dict[str, Any]]
    security_groups: Mapped[list[Any]]
    network_info: Mapped[list[Any]]
    # NULL: the guest has the name that the template makes.
    guest_name: Mapped[str | None] = mapped_column(Name)
    hidden: Mapped[bool | None]
    # The move that has read this row for the last time, or that has written it as a copy: nobody else may write to it.
    closed_by: Mapped[str | None] = mapped_column(Uuid)
    deleted: Mapped[bool]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime | None]
    launched_at: Mapped[datetime | None]
    terminated_at: Mapped[datetime | None]
    deleted_at: Mapped[datetime | None]


class Tags(CellBase):
    __tablename__ = "tags"

    resource_id: Mapped[str] = mapped_column(Uuid, primary_key=True)
    tag: Mapped[str] = mapped_column(Bounded(60), primary_key=True)


class BlockDeviceMapping(CellBase):
    __tablename__ = "block_device_mapping"

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(Uuid, unique=True)
    instance_uuid: Mapped[str] = mapped_column(Uuid, index=True)
    source_type: Mapped[str] = mapped_column(Bounded(16))
    destination_type: Mapped[str] = mapped_column(Bounded(16))
    boot_index: Mapped[int | None]
    device_name: Mapped[str | None] = mapped_column(Bounded(64))
    volume_id: Mapped[str | None] = mapped_column(Uuid, index=True)
    volume_size: Mapped[int | None]
    volume_type: Mapped[str | None] = mapped_column(Name)
    snapshot_id: Mapped[str | None] = mapped_column(Uuid)
    image_id: Mapped[str | None] = mapped_column(Uuid)
    connection_info: Mapped[dict[str, Any] | None]
    attachment_id: Mapped[str | None] = mapped_column(Uuid)
    delete_on_termination: Mapped[bool]
    tag: Mapped[str | None] = mapped_column(Bounded(60))
    disk_bus: Mapped[str | None] = mapped_column(Bounded(16))
    device_type: Mapped[str | None] = mapped_column(Bounded(16))
    guest_format: Mapped[str | None] = mapped_column(Bounded(16))
    multiattach: Mapped[bool] = mapped_column(default=False, server_default=sa.false())
    deleted: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime | None]


class InstanceActions(CellBase):
    __tablename__ = "instance_actions"
    __table_args__ = (sa.Index("instance_actions_request", "instance_uuid", "request_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    action: Mapped[str] = mapped_column(Name)
    instance_uuid: Mapped[str] = mapped_column(Uuid)
    request_id: Mapped[str] = mapped_column(Bounded(64))
    user_id: Mapped[str | None] = mapped_column(Name)
    project_id: Mapped[str | None] = mapped_column(Name)
    start_time: Mapped[datetime]
    updated_at: Mapped[datetime | None]
    finish_time: Mapped[datetime | None]
    message: Mapped[str | None] = mapped_column(Name)


class InstanceActionEvents(CellBase):
    __tablename__ = "instance_actions_events"

    id: Mapped[int] = mapped_column(primary_key=True)
    action_id: Mapped[int] = mapped_column(sa.ForeignKey("instance_actions.id", ondelete="CASCADE"), index=True)
    event: Mapped[str] = mapped_column(Name)
    start_time: Mapped[datetime]
    finish_time: Mapped[datetime | None]
    result: Mapped[str | None] = mapped_column(Bounded(16))
    traceback: Mapped[str | None] = mapped_column(LongText)
    host: Mapped[str | None] = mapped_column(Name)
    details: Mapped[str | None] = mapped_column(LongText)


class InstanceFaults(CellBase):
    __tablename__ = "instance_faults"

    id: Mapped[int] = mapped_column(primary_key=True)
    instance_uuid: Mapped[str] = mapped_column(Uuid, index=True)
    code: Mapped[int]
    message: Mapped[str] = mapped_column(LongText)
    details: Mapped[str] = mapped_column(LongText)
    host: Mapped[str | None] = mapped_column(Name)
    created_at: Mapped[datetime]


class Services(CellBase):
    __tablename__ = "services"
    __table_args__ = (sa.UniqueConstraint("host", "binary"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(Uuid, unique=True)
    host: Mapped[str] = mapped_column(Name)
    binary: Mapped[str] = mapped_column(Bounded(64))
    topic: Mapped[str] = mapped_column(Bounded(64))
    version: Mapped[int]
    disabled: Mapped[bool]
    disabled_reason: Mapped[str | None] = mapped_column(Name)
    forced_down: Mapped[bool]
    last_seen_up: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime | None]


class ComputeNodes(CellBase):
    __tablename__ = "compute_nodes"
    __table_args__ = (sa.UniqueConstraint("host", "hypervisor_hostname"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    uuid: Mapped[str] = mapped_column(Uuid, unique=True)
    host: Mapped[str] = mapped_column(Name)
    hypervisor_hostname: Mapped[str] = mapped_column(Name)
    hypervisor_type: Mapped[str] = mapped_column(Bounded(64))
    hypervisor_version: Mapped[int]
    vcpus: Mapped[int]
    memory_mb: Mapped[int]
    local_gb: Mapped[int]
    vcpus_used: Mapped[int]
    memory_mb_used: Mapped[int]
    local_gb_used: Mapped[int]
    running_vms: Mapped[int]
    cpu_info: Mapped[dict[str, Any]]
    host_ip: Mapped[str | None] = mapped_column(Bounded(39))
    supported_instances: Mapped[list[Any]]
    cpu_allocation_ratio: Mapped[float]
    ram_allocation_ratio: Mapped[float]
    disk_allocation_ratio: Mapped[float]
    uptime: Mapped[str | None] = mapped_column(Name)
    capabilities: Mapped[dict[str, Any]]
    numa_topology: Mapped[dict[str, Any] | None]
    pci_stats: Mapped[list[Any]] = mapped_column(server_default="[]")
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime | None]


class PciDevices(CellBase):
    """The devices that hosts may give to guests, as they reported them."""

    __tablename__ = "pci_devices"
    __table_args__ = (sa.UniqueConstraint("compute_node_uuid", "address"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    compute_node_uuid: Mapped[str] = mapped_column(Uuid)
    address: Mapped[str] = mapped_column(Bounded(12))
    vendor_id: Mapped[str] = mapped_column(Bounded(4))
    product_id: Mapped[str] = mapped_column(Bounded(4))
    dev_type: Mapped[str] = mapped_column(Bounded(8))
    numa_node: Mapped[int | None]
    parent_addr: Mapped[str | None] = mapped_column(Bounded(12))
    label: Mapped[str | None] = mapped_column(Name)
    status: Mapped[str] = mapped_column(Bounded(36))
    instance_uuid: Mapped[str | None] = mapped_column(Uuid, index=True)
    request_id: Mapped[str | None] = mapped_column(Bounded(36))
    extra_info: Mapped[dict[str, Any]]
    updated_at: Mapped[datetime]


keep_all_of_unicode(CellBase.metadata)
