"""Hosts and servers for tests of packing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from oslo_config.cfg import ConfigOpts

from causeway.clients.placement import Capacity
from causeway.conf import scheduler as options
from causeway.model.flavor import Flavor
from causeway.model.host import Aggregate, ComputeNode, Service
from causeway.scheduler.diagnose import Offer
from causeway.scheduler.filters import RequestedDestination, enabled_filters
from causeway.scheduler.filters.compute import ComputeFilter
from causeway.scheduler.filters.lifetimes import Filters
from causeway.scheduler.host_state import HostRecord, HostState
from causeway.scheduler.many import GroupPlaces, Mover, Packing
from causeway.scheduler.packing import Kind, Packer
from causeway.scheduler.request import RequestedGroup, RequestSpec
from causeway.scheduler.resources import Prefilters, candidates_request


def conf() -> ConfigOpts:
    conf = ConfigOpts()
    for group, group_options in options.OPTS.items():
        conf.register_opts(group_options, group=group)
    conf([], default_config_files=[], default_config_dirs=[])
    return conf


def host(name: str, memory: int, vcpus: int = 1000, *, cell: str = "cell2", used: int = 0, **facts: Any) -> HostState:
    """``facts``: ``disabled``, ``metadata`` of its aggregate, ``node``: more of its compute node."""
    node = ComputeNode(
        uuid=f"node-{name}",
        host=name,
        hypervisor_hostname=name,
        hypervisor_type="QEMU",
        hypervisor_version=8002000,
        vcpus=vcpus,
        memory_mb=memory,
        local_gb=100_000,
        **facts.get("node", {}),
    )
    now = datetime.now(UTC).replace(tzinfo=None)
    service = Service(f"s-{name}", name, "nova-compute", last_seen_up=now, disabled=facts.get("disabled", False))
    aggregates = [Aggregate(f"a-{name}", "a", [name], facts["metadata"])] if "metadata" in facts else []
    return HostState(
        record=HostRecord(cell, cell, node, service),
        aggregates=aggregates,
        capacity={
            "VCPU": Capacity(vcpus, 0),
            "MEMORY_MB": Capacity(memory, used),
            "DISK_GB": Capacity(100_000, 0),
        },
    )


def spec(memory: int, vcpus: int = 1, *, extra_specs: dict[str, str] | None = None, **more: Any) -> RequestSpec:
    flavor = Flavor(str(memory), f"m{memory}", vcpus=vcpus, memory_mb=memory, root_gb=1, extra_specs=extra_specs or {})
    return RequestSpec("", "project", "user", flavor, **more)


def group(policy: str, members: dict[str, list[str]], most: int = 1) -> GroupPlaces:
    return GroupPlaces(RequestedGroup("group", policy, {"max_server_per_host": most}), members)


def pack(
    hosts: list[HostState],
    specs: list[RequestSpec],
    movers: list[Mover],
    groups: dict[str, GroupPlaces] | None = None,
    traits: dict[str, set[str]] | None = None,
    instance_hosts: dict[str, str] | None = None,
    pools: dict[str, str] | None = None,
) -> Packing:
    """``pools``: of hosts whose disk another provider shares."""
    options = conf()
    filters = Filters([RequestedDestination(options), ComputeFilter(options)], enabled_filters(options))
    aggregates = [aggregate for each in hosts for aggregate in each.aggregates]
    kinds = [Kind(each, candidates_request(each, aggregates, Prefilters())) for each in specs]
    offers = {uuid: Offer(traits=each) for uuid, each in (traits or {}).items()}
    for name, pool in (pools or {}).items():
        offers.setdefault(f"node-{name}", Offer()).shared["DISK_GB"] = pool
    return Packer(filters, hosts, offers, kinds, groups or {}, instance_hosts or {}).pack(movers, [])


def movers(count: int, of_spec: int = 0, prefix: str = "s", **more: Any) -> list[Mover]:
    return [Mover(f"{prefix}{number:05}", of_spec, **more) for number in range(count)]
