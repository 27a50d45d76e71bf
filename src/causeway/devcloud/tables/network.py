"""Networks, subnets, ports with their bindings, and what belongs to them; the hosts that ports can be bound to."""

from typing import Any

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from causeway.devcloud.tables.base import Base, new_id, now

BRIDGE, SWITCH, UNBOUND, FAILED = "bridge", "ovs", "unbound", "binding_failed"
FUNCTION, WHOLE_DEVICE = "hw_veb", "hostdev_physical"
"""The VIF types of bindings; the last two are devices of the host."""
PLUGGED = frozenset((BRIDGE, SWITCH, FUNCTION, WHOLE_DEVICE))


class Network(Base):
    __tablename__ = "networks"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    name: Mapped[str] = mapped_column(default="")
    project_id: Mapped[str] = mapped_column(index=True)
    description: Mapped[str] = mapped_column(default="")
    admin_state_up: Mapped[bool] = mapped_column(default=True)
    shared: Mapped[bool] = mapped_column(default=False)
    external: Mapped[bool] = mapped_column(default=False)
    mtu: Mapped[int] = mapped_column(default=1450)
    network_type: Mapped[str] = mapped_column(default="vxlan")
    physical_network: Mapped[str | None]
    segmentation_id: Mapped[int | None] = mapped_column(unique=True)
    port_security_enabled: Mapped[bool] = mapped_column(default=True)
    dns_domain: Mapped[str] = mapped_column(default="")
    tags: Mapped[list[str]] = mapped_column(default=list)
    availability_zone_hints: Mapped[list[str]] = mapped_column(default=list)
    revision: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[str] = mapped_column(default=now)
    updated_at: Mapped[str] = mapped_column(default=now)
    subnets: Mapped[list["Subnet"]] = relationship(
        back_populates="network", order_by="Subnet.created_at", passive_deletes="all"
    )


class Subnet(Base):
    __tablename__ = "subnets"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    name: Mapped[str] = mapped_column(default="")
    project_id: Mapped[str] = mapped_column(index=True)
    network_id: Mapped[str] = mapped_column(ForeignKey("networks.id"), index=True)
    description: Mapped[str] = mapped_column(default="")
    ip_version: Mapped[int] = mapped_column(default=4)
    cidr: Mapped[str]
    gateway_ip: Mapped[str | None]
    enable_dhcp: Mapped[bool] = mapped_column(default=True)
    allocation_pools: Mapped[list[Any]] = mapped_column(default=list)
    dns_nameservers: Mapped[list[str]] = mapped_column(default=list)
    host_routes: Mapped[list[Any]] = mapped_column(default=list)
    ipv6_address_mode: Mapped[str | None]
    ipv6_ra_mode: Mapped[str | None]
    tags: Mapped[list[str]] = mapped_column(default=list)
    revision: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[str] = mapped_column(default=now)
    updated_at: Mapped[str] = mapped_column(default=now)
    network: Mapped[Network] = relationship(back_populates="subnets")


class Port(Base):
    __tablename__ = "ports"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    name: Mapped[str] = mapped_column(default="")
    project_id: Mapped[str] = mapped_column(index=True)
    network_id: Mapped[str] = mapped_column(ForeignKey("networks.id"), index=True)
    description: Mapped[str] = mapped_column(default="")
    mac_address: Mapped[str]
    admin_state_up: Mapped[bool] = mapped_column(default=True)
    status: Mapped[str] = mapped_column(default="DOWN")
    device_id: Mapped[str] = mapped_column(default="", index=True)
    device_owner: Mapped[str] = mapped_column(default="")
    port_security_enabled: Mapped[bool] = mapped_column(default=True)
    security_groups: Mapped[list[str]] = mapped_column(default=list)
    allowed_address_pairs: Mapped[list[Any]] = mapped_column(default=list)
    extra_dhcp_opts: Mapped[list[Any]] = mapped_column(default=list)
    dns_name: Mapped[str] = mapped_column(default="")
    propagate_uplink_status: Mapped[bool] = mapped_column(default=True)
    vnic_type: Mapped[str] = mapped_column(default="normal")
    tags: Mapped[list[str]] = mapped_column(default=list)
    revision: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[str] = mapped_column(default=now)
    updated_at: Mapped[str] = mapped_column(default=now)
    fixed_ips: Mapped[list["FixedIp"]] = relationship(cascade="all, delete-orphan", order_by="FixedIp.position")
    bindings: Mapped[list["PortBinding"]] = relationship(
        cascade="all, delete-orphan", order_by="PortBinding.created_at"
    )
    __table_args__ = (UniqueConstraint("network_id", "mac_address"),)

    @property
    def active_binding(self) -> "PortBinding | None":
        """The ACTIVE binding, of which there is at most one."""
        return next((row for row in self.bindings if row.status == "ACTIVE"), None)


class PortHints(Base):
    """A port's wishes about its host's hardware. Most ports have no row."""

    __tablename__ = "port_hints"
    port_id: Mapped[str] = mapped_column(primary_key=True)
    numa_affinity_policy: Mapped[str | None]
    trusted: Mapped[bool | None]


class FixedIp(Base):
    __tablename__ = "fixed_ips"
    subnet_id: Mapped[str] = mapped_column(ForeignKey("subnets.id"), primary_key=True)
    ip_address: Mapped[str] = mapped_column(primary_key=True)
    port_id: Mapped[str] = mapped_column(ForeignKey("ports.id"), index=True)
    position: Mapped[int] = mapped_column(default=0)


class PortBinding(Base):
    __tablename__ = "port_bindings"
    port_id: Mapped[str] = mapped_column(ForeignKey("ports.id"), primary_key=True)
    host: Mapped[str] = mapped_column(primary_key=True)
    status: Mapped[str]
    vnic_type: Mapped[str] = mapped_column(default="normal")
    vif_type: Mapped[str] = mapped_column(default="unbound")
    vif_details: Mapped[dict[str, Any]] = mapped_column(default=dict)
    profile: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created_at: Mapped[str] = mapped_column(default=now)


class QosPolicy(Base):
    __tablename__ = "qos_policies"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    project_id: Mapped[str] = mapped_column(index=True)
    name: Mapped[str] = mapped_column(default="")
    description: Mapped[str] = mapped_column(default="")
    shared: Mapped[bool] = mapped_column(default=False)
    rules: Mapped[list[Any]] = mapped_column(default=list)


class QosAssociation(Base):
    """The policy of a port or network."""

    __tablename__ = "qos_associations"
    resource_id: Mapped[str] = mapped_column(primary_key=True)
    policy_id: Mapped[str] = mapped_column(ForeignKey("qos_policies.id"), index=True)


class SecurityGroup(Base):
    __tablename__ = "security_groups"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    name: Mapped[str]
    project_id: Mapped[str] = mapped_column(index=True)
    description: Mapped[str] = mapped_column(default="")
    stateful: Mapped[bool] = mapped_column(default=True)
    tags: Mapped[list[str]] = mapped_column(default=list)
    revision: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[str] = mapped_column(default=now)
    updated_at: Mapped[str] = mapped_column(default=now)
    rules: Mapped[list["SecurityGroupRule"]] = relationship(
        cascade="all, delete-orphan", order_by="SecurityGroupRule.created_at"
    )


class SecurityGroupRule(Base):
    __tablename__ = "security_group_rules"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    security_group_id: Mapped[str] = mapped_column(ForeignKey("security_groups.id"), index=True)
    project_id: Mapped[str] = mapped_column(index=True)
    direction: Mapped[str]
    ethertype: Mapped[str] = mapped_column(default="IPv4")
    protocol: Mapped[str | None]
    port_range_min: Mapped[int | None]
    port_range_max: Mapped[int | None]
    remote_ip_prefix: Mapped[str | None]
    remote_group_id: Mapped[str | None]
    description: Mapped[str] = mapped_column(default="")
    created_at: Mapped[str] = mapped_column(default=now)
    updated_at: Mapped[str] = mapped_column(default=now)


class Router(Base):
    __tablename__ = "routers"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    name: Mapped[str] = mapped_column(default="")
    project_id: Mapped[str] = mapped_column(index=True)
    description: Mapped[str] = mapped_column(default="")
    admin_state_up: Mapped[bool] = mapped_column(default=True)
    external_network_id: Mapped[str | None]
    tags: Mapped[list[str]] = mapped_column(default=list)
    revision: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[str] = mapped_column(default=now)
    updated_at: Mapped[str] = mapped_column(default=now)


class FloatingIp(Base):
    __tablename__ = "floating_ips"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    project_id: Mapped[str] = mapped_column(index=True)
    description: Mapped[str] = mapped_column(default="")
    floating_network_id: Mapped[str] = mapped_column(ForeignKey("networks.id"))
    floating_ip_address: Mapped[str]
    floating_port_id: Mapped[str]
    port_id: Mapped[str | None] = mapped_column(index=True)
    fixed_ip_address: Mapped[str | None]
    router_id: Mapped[str | None]
    tags: Mapped[list[str]] = mapped_column(default=list)
    revision: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[str] = mapped_column(default=now)
    updated_at: Mapped[str] = mapped_column(default=now)


class Host(Base):
    """A host that ports can be bound to."""

    __tablename__ = "hosts"
    name: Mapped[str] = mapped_column(primary_key=True)
    agent_id: Mapped[str] = mapped_column(default=new_id)
    created_at: Mapped[str] = mapped_column(default=now)
