"""[scheduler] and [filter_scheduler]: names and defaults as in nova.conf, except where the help says otherwise."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

FILTERS = [
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
    "AggregateInstanceExtraSpecsFilter",
    "NUMATopologyFilter",
    "PciPassthroughFilter",
]


def _multiplier(name: str, default: float, favours: str) -> Opt:
    return cfg.FloatOpt(
        f"{name}_weight_multiplier",
        default=default,
        help=f"Positive favours {favours}, negative the opposite, 0 ignores it. An aggregate's metadata of the same name"
        " overrides it for the aggregate's hosts (the smallest one if there are several).",
    )


OPTS: dict[str, list[Opt]] = {
    "scheduler": [
        cfg.IntOpt(
            "max_attempts",
            default=3,
            min=1,
            help="Hosts that are tried for a build, resize or cold migration: the chosen one and its alternates."
            " 1: no alternates.",
        ),
        cfg.IntOpt(
            "max_placement_results",
            default=1000,
            min=1,
            help="Most allocation candidates to ask Placement for.",
        ),
        cfg.IntOpt(
            "ask_for_all_up_to",
            default=100,
            min=0,
            help="Up to this number of hosts, every decision asks Placement for all hosts that fit. In a larger cloud a host is"
            " chosen from what is remembered of the hosts, and Placement is asked about that host; it is asked for all hosts only"
            " if that one does not fit, and for NUMA cells, devices and resources of ports. Ours; nova.conf does not have it.",
        ),
        cfg.BoolOpt(
            "limit_tenants_to_placement_aggregate",
            default=False,
            help="Projects that are named in an aggregate's filter_tenant_id... metadata only get hosts of such"
            " aggregates.",
        ),
        cfg.BoolOpt(
            "placement_aggregate_required_for_tenants",
            default=False,
            help="With limit_tenants_to_placement_aggregate: projects that no aggregate names get no host at all.",
        ),
        cfg.BoolOpt(
            "query_placement_for_image_type_support",
            default=False,
            help="Only hosts that report (by a trait) that they can boot the image's disk format.",
        ),
        cfg.BoolOpt(
            "image_metadata_prefilter",
            default=False,
            help="Only hosts that report (by traits) that they have what the image's properties name: buses of disks, models of"
            " video and network cards, the architecture.",
        ),
        cfg.BoolOpt(
            "enable_isolated_aggregate_filtering",
            default=False,
            help="Hosts of aggregates with trait:NAME=required metadata only for servers that require these traits.",
        ),
        cfg.BoolOpt(
            "move_keeps_availability_zone",
            default=True,
            help="A resize or cold migration stays in the server's zone, even if no request named that zone;"
            " false: only servers that were created in a zone or pinned to one stay there, as in Nova. A host that an"
            " administrator names may be in any zone. Ours; nova.conf does not have it.",
        ),
        cfg.FloatOpt(
            "host_state_max_age",
            default=10.0,
            min=0.0,
            help="Seconds for which hosts, services and aggregates are remembered. A request that finds no host, or finds"
            " one whose service seems to be down, looks again. Ours; nova.conf does not have it.",
        ),
    ],
    "filter_scheduler": [
        cfg.ListOpt(
            "enabled_filters",
            default=FILTERS,
            help="Filters in the order in which they run. AggregateInstanceExtraSpecsFilter is not in nova.conf's"
            " default: here flavors are tied to cells through aggregates.",
        ),
        cfg.ListOpt("weight_classes", default=["all"], help="Weighers by name, or all."),
        cfg.IntOpt("host_subset_size", default=1, min=1, help="Choose at random among this many of the best hosts."),
        cfg.BoolOpt(
            "shuffle_best_same_weighed_hosts",
            default=False,
            help="Choose at random among the best hosts if several have the same weight.",
        ),
        cfg.IntOpt("max_io_ops_per_host", default=8, min=0, help="For IoOpsFilter."),
        cfg.IntOpt("max_instances_per_host", default=50, min=1, help="For NumInstancesFilter."),
        cfg.ListOpt("isolated_images", default=[], help="Image ids for IsolatedHostsFilter."),
        cfg.ListOpt("isolated_hosts", default=[], help="Host names for IsolatedHostsFilter."),
        cfg.BoolOpt(
            "restrict_isolated_hosts_to_isolated_images",
            default=True,
            help="IsolatedHostsFilter keeps other images off the isolated hosts.",
        ),
        _multiplier("ram", 1.0, "hosts with more free memory"),
        _multiplier("cpu", 1.0, "hosts with more free VCPUs"),
        _multiplier("disk", 1.0, "hosts with more free disk"),
        _multiplier("hypervisor_version", 1.0, "newer hypervisors"),
        _multiplier("num_instances", 0.0, "hosts with more servers"),
        _multiplier("io_ops", -1.0, "hosts that are busier with disks (the default the less busy)"),
        _multiplier("soft_affinity", 1.0, "hosts with more members of the server's group"),
        _multiplier("soft_anti_affinity", 1.0, "hosts with fewer members of the server's group"),
        _multiplier("build_failure", 1_000_000.0, "hosts with fewer recent failed builds"),
        _multiplier(
            "shared_storage", 1_000.0, "hosts that share the storage of the server's disks, in a move or evacuation"
        ),
        _multiplier(
            "cross_cell_move", 1_000_000.0, "hosts of the server's own cell in a move; negative drains that cell"
        ),
    ],
}
