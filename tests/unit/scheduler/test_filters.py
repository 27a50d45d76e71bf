"""Which hosts each filter lets pass, and what it says of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from oslo_config.cfg import ConfigOpts

from causeway.model.image import ImageMeta
from causeway.scheduler.filters import AVAILABLE, Request, RequestedDestination, enabled_filters, first_refusal
from causeway.scheduler.filters.operators import matches
from causeway.scheduler.host_state import HostState
from causeway.scheduler.request import Destination, RequestedGroup, RequestSpec

MakeHost = Callable[..., HostState]
MakeSpec = Callable[..., RequestSpec]


@pytest.mark.parametrize(
    ("value", "wanted", "fits"),
    [
        ("1", "1", True),
        ("1", "2", False),
        ("two words", "two words", True),
        ("two words", "two", False),
        ("4", "= 3", True),  # for numbers, "=" is "at least"
        ("2", "= 3", False),
        ("4", ">= 4", True),
        ("3", ">= 4", False),
        ("4", "<= 4", True),
        ("5", "<= 4", False),
        ("4", "== 4.0", True),
        ("4", "!= 4", False),
        ("many", ">= 4", False),  # can't be compared
        ("abc", "s== abc", True),
        ("abc", "s== abd", False),
        ("abc", "s!= abd", True),
        ("b", "s> a", True),
        ("b", "s< a", False),
        ("b", "s>= b", True),
        ("b", "s<= a", False),
        ("gcc-12", "<in> gcc", True),
        ("clang", "<in> gcc", False),
        ("b", "<or> a <or> b", True),
        ("c", "<or> a <or> b", False),
        ("['aes', 'mmx']", "<all-in> aes mmx", True),
        ("['aes']", "<all-in> aes mmx", False),
        ("not a list", "<all-in> aes", False),
        ("15", "<range-in> [ 10 20 ]", True),
        ("21", "<range-in> [ 10 20 ]", False),
        ("1", ">=", False),  # nothing to compare with
    ],
)
def test_operators_compare_as_in_nova(value: str, wanted: str, fits: bool) -> None:
    assert matches(value, wanted) is fits


def refusal_of(name: str, conf: ConfigOpts, host: HostState, spec: RequestSpec, **found: Any) -> str | None:
    refusal = AVAILABLE[name](conf).check(host, Request(spec, **found))
    return refusal.reason if refusal else None


@pytest.mark.parametrize(
    ("host", "says"),
    [
        ({}, None),
        ({"service": {"disabled": True, "disabled_reason": "repair"}}, "is disabled [reason: repair]"),
        ({"is_up": False, "service": {"forced_down": True}}, "is down [last seen up: forced down]"),
        ({"is_up": False, "service": {"last_seen_up": None}}, "is down [last seen up: never]"),
        ({"node": {"capabilities": {"folders_lack": "/a is full"}}}, "can't write its disks [reason: /a is full]"),
        ({"node": {"capabilities": {"folders_lack": None, "other_owner": None}}}, None),
        ({"node": {"capabilities": {"other_owner": "Nova"}}}, "may have another owner [reason: Nova]"),
    ],
)
def test_only_hosts_that_are_up_and_enabled_pass(
    conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec, host: Any, says: str | None
) -> None:
    assert refusal_of("ComputeFilter", conf, make_host(**host), make_spec()) == says


@pytest.mark.parametrize(
    ("metadata", "extra_specs", "says"),
    [
        ({"gen": "1"}, {"aggregate_instance_extra_specs:gen": "1"}, None),
        ({"gen": "1"}, {"gen": "1"}, None),
        ({"gen": "1"}, {"other:gen": "2"}, None),
        ({"gen": "1"}, {}, None),
        (
            {"gen": "1"},
            {"aggregate_instance_extra_specs:gen": "2"},
            "lacks the aggregate property gen=2 [wants: 2, has: 1]",
        ),
        (
            None,
            {"aggregate_instance_extra_specs:gen": "2"},
            "lacks the aggregate property gen=2 [wants: 2, has: nothing]",
        ),
        ([{"gen": "1"}, {"gen": "2"}], {"aggregate_instance_extra_specs:gen": "2"}, None),
        ({"gen": "2"}, {"aggregate_instance_extra_specs:gen": "<or> 1 <or> 2"}, None),
        ({"gen": "3"}, {"aggregate_instance_extra_specs:gen": ">= 2"}, None),
    ],
)
def test_extra_specs_are_matched_with_aggregates(
    conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec, metadata: Any, extra_specs: Any, says: str | None
) -> None:
    host, spec = make_host(metadata=metadata), make_spec(extra_specs=extra_specs)
    assert refusal_of("AggregateInstanceExtraSpecsFilter", conf, host, spec) == says


@pytest.mark.parametrize(
    ("extra_specs", "says"),
    [
        ({"capabilities:hypervisor_type": "QEMU"}, None),
        ({"hypervisor_type": "QEMU"}, None),
        ({"capabilities:cpu_info:vendor": "Intel"}, None),
        ({"capabilities:cpu_info:features": "<in> avx"}, None),
        ({"capabilities:nested:fact": "yes"}, None),  # JSON in a text
        ({"aggregate_instance_extra_specs:gen": "1", "resources:VCPU": "2", "hw:cpu_policy": "shared"}, None),
        ({"capabilities:hypervisor_version": ">= 9000000"}, "lacks the capability hypervisor_version >= 9000000"),
        ({"capabilities:gpu": "yes"}, "lacks the capability gpu yes [wants: yes, has: nothing]"),
        ({"capabilities:cpu_info:vendor:name": "Intel"}, "lacks the capability cpu_info:vendor:name Intel"),
    ],
)
def test_extra_specs_are_matched_with_capabilities(
    conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec, extra_specs: Any, says: str | None
) -> None:
    cpu_info = {"vendor": "Intel", "features": ["sse", "avx"]}
    host = make_host(node={"cpu_info": cpu_info, "capabilities": {"nested": '{"fact": "yes"}'}})
    reason = refusal_of("ComputeCapabilitiesFilter", conf, host, make_spec(extra_specs=extra_specs))
    assert (reason is None) if says is None else (reason is not None and reason.startswith(says))


@pytest.mark.parametrize(
    ("properties", "fits"),
    [
        ({}, True),
        ({"hw_architecture": "x86_64"}, True),
        ({"architecture": "amd64"}, True),
        ({"hw_architecture": "aarch64"}, False),
        ({"img_hv_type": "QEMU", "hw_vm_mode": "hvm"}, True),
        ({"hypervisor_type": "xen"}, False),
        ({"vm_mode": "exe"}, False),
        ({"hypervisor_version_requires": ">=8.0"}, True),
        ({"img_hv_requested_version": ">=9.0"}, False),
        ({"img_hv_requested_version": "no version"}, False),
    ],
)
def test_image_properties_are_matched_with_hypervisors(
    conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec, properties: Any, fits: bool
) -> None:
    spec = make_spec(image=ImageMeta("image", properties=properties))
    assert (refusal_of("ImagePropertiesFilter", conf, make_host(), spec) is None) is fits


def test_without_an_image_any_host_will_do(conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec) -> None:
    host = make_host(node={"supported_instances": []})
    assert refusal_of("ImagePropertiesFilter", conf, host, make_spec()) is None


@pytest.mark.parametrize(
    ("rules", "members", "own_host", "fits"),
    [
        ({}, {}, None, True),
        ({}, {"host2": 1}, None, True),
        ({}, {"host1": 1}, None, False),
        ({"max_server_per_host": 2}, {"host1": 1}, None, True),
        ({"max_server_per_host": 2}, {"host1": 2}, None, False),
        ({}, {"host1": 1}, "host1", True),  # may stay where it is
    ],
)
def test_members_of_anti_affinity_groups_pass_only_apart(
    conf: ConfigOpts,
    make_host: MakeHost,
    make_spec: MakeSpec,
    rules: Any,
    members: dict[str, int],
    own_host: str | None,
    fits: bool,
) -> None:
    spec = make_spec(server_group=RequestedGroup("group", "anti-affinity", rules))
    reason = refusal_of(
        "ServerGroupAntiAffinityFilter", conf, make_host(), spec, group_hosts=members, own_host=own_host
    )
    assert (reason is None) is fits


@pytest.mark.parametrize(
    ("members", "fits"), [({}, True), ({"host1": 1}, True), ({"host2": 1}, False), ({"host1": 1, "host2": 1}, True)]
)
def test_members_of_affinity_groups_pass_only_together(
    conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec, members: dict[str, int], fits: bool
) -> None:
    spec = make_spec(server_group=RequestedGroup("group", "affinity"))
    reason = refusal_of("ServerGroupAffinityFilter", conf, make_host(), spec, group_hosts=members)
    assert (reason is None) is fits


@pytest.mark.parametrize("name", ["ServerGroupAffinityFilter", "ServerGroupAntiAffinityFilter"])
def test_soft_policies_refuse_nobody(conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec, name: str) -> None:
    for policy in ("soft-affinity", "soft-anti-affinity"):
        spec = make_spec(server_group=RequestedGroup("group", policy))
        assert refusal_of(name, conf, make_host(), spec, group_hosts={"host1": 5, "host2": 1}) is None


@pytest.mark.parametrize(
    ("name", "hint", "where", "fits"),
    [
        ("SameHostFilter", {}, {}, True),
        ("SameHostFilter", {"same_host": ["a", "b"]}, {"a": "host2", "b": "host1"}, True),
        ("SameHostFilter", {"same_host": ["a"]}, {"a": "host2"}, False),
        ("SameHostFilter", {"same_host": ["a"]}, {}, False),
        ("DifferentHostFilter", {"different_host": ["a"]}, {"a": "host1"}, False),
        ("DifferentHostFilter", {"different_host": ["a"]}, {"a": "host2"}, True),
    ],
)
def test_hints_that_name_servers_decide(
    conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec, name: str, hint: Any, where: Any, fits: bool
) -> None:
    spec = make_spec(scheduler_hints=hint)
    assert (refusal_of(name, conf, make_host(), spec, instance_hosts=where) is None) is fits


def test_busy_hosts_are_refused(conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec) -> None:
    spec = make_spec()
    assert refusal_of("NumInstancesFilter", conf, make_host(node={"running_vms": 49}), spec) is None
    assert refusal_of("NumInstancesFilter", conf, make_host(node={"running_vms": 49}, num_picked=1), spec) is not None
    assert refusal_of("IoOpsFilter", conf, make_host(record={"num_io_ops": 7}), spec) is None
    assert refusal_of("IoOpsFilter", conf, make_host(record={"num_io_ops": 8}), spec) is not None


@pytest.mark.parametrize(
    ("image", "host", "restrict", "fits"),
    [
        ("isolated", "isolated", True, True),
        ("isolated", "other", True, False),
        ("other", "isolated", True, False),
        ("other", "isolated", False, True),
        ("other", "other", True, True),
    ],
)
def test_isolated_hosts_take_isolated_images_only(
    conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec, image: str, host: str, restrict: bool, fits: bool
) -> None:
    for name, value in (
        ("isolated_images", ["isolated"]),
        ("isolated_hosts", ["isolated"]),
        ("restrict_isolated_hosts_to_isolated_images", restrict),
    ):
        conf.set_override(name, value, group="filter_scheduler")
    reason = refusal_of("IsolatedHostsFilter", conf, make_host(host), make_spec(image=ImageMeta(image)))
    assert (reason is None) is fits


@pytest.mark.parametrize(
    ("metadata", "fits"),
    [
        (None, True),
        ({"filter_tenant_id": "p"}, True),
        ({"filter_tenant_id_2": "q, p"}, True),
        ({"filter_tenant_id": "q"}, False),
        ([{"filter_tenant_id": "q"}, {"filter_tenant_id": "p"}], True),
    ],
)
def test_aggregates_of_projects_take_their_projects_only(
    conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec, metadata: Any, fits: bool
) -> None:
    reason = refusal_of("AggregateMultiTenancyIsolation", conf, make_host(metadata=metadata), make_spec())
    assert (reason is None) is fits


@pytest.mark.parametrize(
    ("spec", "host", "fits"),
    [
        ({}, {}, True),
        ({"ignore_hosts": ["host1"]}, {}, False),
        ({"force_hosts": ["host1"]}, {}, True),
        ({"force_hosts": ["host2"]}, {}, False),
        ({"requested_destination": Destination(host="host1")}, {}, True),
        ({"requested_destination": Destination(host="host2")}, {}, False),
        ({"requested_destination": Destination(host="host1", node="other")}, {}, False),
        ({"requested_destination": Destination(cell="uuid-cell1")}, {}, True),
        ({"requested_destination": Destination(cell="uuid-cell2")}, {}, False),
        ({"requested_destination": Destination(cell="uuid-cell2", allow_cross_cell_move=True)}, {}, True),
        ({}, {"record": {"cell_disabled": True}}, False),
    ],
)
def test_the_request_decides_where_to_go(
    conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec, spec: Any, host: Any, fits: bool
) -> None:
    refusal = RequestedDestination(conf).check(make_host(**host), Request(make_spec(**spec)))
    assert (refusal is None) is fits


def test_the_first_filter_that_refuses_is_named(conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec) -> None:
    host = make_host(service={"disabled": True})
    spec = make_spec(extra_specs={"aggregate_instance_extra_specs:gen": "1"})
    refusal = first_refusal(enabled_filters(conf), host, Request(spec))
    assert refusal is not None
    assert refusal.filter == "ComputeFilter"


def test_flavors_are_tied_to_aggregates_by_default(conf: ConfigOpts) -> None:
    assert [one.name for one in enabled_filters(conf)] == [
        "ComputeFilter",
        "ComputeCapabilitiesFilter",
        "ImagePropertiesFilter",
        "ServerGroupAntiAffinityFilter",
        "ServerGroupAffinityFilter",
        "AggregateInstanceExtraSpecsFilter",
        "NUMATopologyFilter",
        "PciPassthroughFilter",
    ]


def test_a_filter_that_does_not_exist_is_said_at_the_start(conf: ConfigOpts) -> None:
    conf.set_override("enabled_filters", ["RamFilter"], group="filter_scheduler")
    with pytest.raises(ValueError, match="RamFilter"):
        enabled_filters(conf)


@pytest.mark.parametrize("name", sorted(AVAILABLE))
def test_an_empty_host_serves_a_plain_request(
    conf: ConfigOpts, make_host: MakeHost, make_spec: MakeSpec, name: str
) -> None:
    assert refusal_of(name, conf, make_host(), make_spec()) is None
