"""From a flavor to a query; what of a request is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from causeway import errors
from causeway.clients.placement import RequestGroup
from causeway.model.flavor import Flavor
from causeway.model.host import Aggregate
from causeway.model.image import ImageMeta
from causeway.scheduler.request import PERSISTED, Destination, RequestedGroup, RequestSpec
from causeway.scheduler.resources import Prefilters, candidates_request, flavor_groups

MakeSpec = Callable[..., RequestSpec]


@pytest.mark.parametrize(
    ("flavor", "is_volume_backed", "resources"),
    [
        ({"root_gb": 10}, False, {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 10}),
        ({"root_gb": 10}, True, {"VCPU": 2, "MEMORY_MB": 512}),
        ({"root_gb": 0}, False, {"VCPU": 2, "MEMORY_MB": 512}),
        ({"root_gb": 10, "ephemeral_gb": 5, "swap": 1025}, True, {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 7}),
        ({"root_gb": 0, "extra_specs": {"resources:VCPU": "0"}}, False, {"MEMORY_MB": 512}),
        (
            {"root_gb": 0, "extra_specs": {"resources:CUSTOM_GPU": "1", "resources:MEMORY_MB": "64"}},
            False,
            {"VCPU": 2, "MEMORY_MB": 64, "CUSTOM_GPU": 1},
        ),
        ({"root_gb": 0, "extra_specs": {"hw:cpu_policy": "dedicated"}}, False, {"PCPU": 2, "MEMORY_MB": 512}),
    ],
)
def test_a_flavor_asks_for_its_resources(
    flavor: dict[str, Any], is_volume_backed: bool, resources: dict[str, int]
) -> None:
    groups = flavor_groups(Flavor("1", "f", 2, 512, **flavor), is_volume_backed=is_volume_backed)
    assert groups[""].resources == resources


def test_groups_and_traits_of_a_flavor_are_read() -> None:
    extra_specs = {
        "resources_NET1:SRIOV_NET_VF": "1",
        "trait_NET1:CUSTOM_FAST": "required",
        "trait:HW_CPU_X86_AVX": "required",
        "trait:CUSTOM_OLD": "forbidden",
        "trait:CUSTOM_IGNORED": "preferred",
    }
    groups = flavor_groups(Flavor("1", "f", 1, 128, 1, extra_specs=extra_specs), is_volume_backed=False)
    assert groups["_NET1"] == RequestGroup("_NET1", {"SRIOV_NET_VF": 1}, {"CUSTOM_FAST"})
    assert (groups[""].required, groups[""].forbidden) == ({"HW_CPU_X86_AVX"}, {"CUSTOM_OLD"})


# "²" is a digit, but no number.
@pytest.mark.parametrize("amount", ["many", "²"])
def test_an_amount_that_is_no_number_is_refused(make_spec: MakeSpec, amount: str) -> None:
    with pytest.raises(errors.NoValidHost, match=f"resources:VCPU={amount}"):
        candidates_request(make_spec(extra_specs={"resources:VCPU": amount}), [], Prefilters())


def test_the_query_has_resources_traits_and_image(make_spec: MakeSpec) -> None:
    image = ImageMeta("i", disk_format="qcow2", properties={"trait:CUSTOM_FROM_IMAGE": "required"})
    spec = make_spec(image=image, extra_specs={"trait:CUSTOM_OLD": "forbidden"})
    asked = candidates_request(spec, [], Prefilters(image_type_support=True))
    assert asked.to_query() == [
        ("limit", "1000"),
        ("required", "CUSTOM_FROM_IMAGE,!CUSTOM_OLD"),
        ("resources", "DISK_GB:1,MEMORY_MB:128,VCPU:1"),
        ("root_required", "COMPUTE_IMAGE_TYPE_QCOW2,!COMPUTE_STATUS_DISABLED"),
    ]


def test_one_host_is_asked_for_in_its_tree_without_a_limit(make_spec: MakeSpec) -> None:
    """What the node has itself is: a provider may share its disk, of which there is nothing in the tree of the node."""
    asked = candidates_request(make_spec(), [], Prefilters(), in_tree="node")
    query = dict(asked.to_query())
    assert (query["in_tree_NODE"], query["resources_NODE"]) == ("node", "VCPU:1")
    assert query["resources"] == "DISK_GB:1,MEMORY_MB:128"
    assert query.keys().isdisjoint({"limit", "group_policy", "in_tree"})
    asked.groups.append(RequestGroup("_port1", {"CUSTOM_A": 1}))
    assert dict(asked.to_query())["group_policy"] == "none"
    asked.group_policy = "isolate"
    assert dict(asked.to_query())["in_tree"] == "node"


def test_several_groups_need_a_policy(make_spec: MakeSpec) -> None:
    two = {"resources1:CUSTOM_A": "1", "resources2:CUSTOM_B": "1"}
    with pytest.raises(errors.NoValidHost, match="group_policy"):
        candidates_request(make_spec(extra_specs=two), [], Prefilters())
    asked = candidates_request(make_spec(extra_specs=two | {"group_policy": "isolate"}), [], Prefilters())
    assert asked.group_policy == "isolate"
    ports = [RequestGroup("_port1", {"NET_BW_EGR_KILOBIT_PER_SEC": 1}), RequestGroup("_port2", {"CUSTOM_A": 1})]
    asked = candidates_request(make_spec(requested_resources=ports), [], Prefilters())
    assert (asked.group_policy, len(asked.groups)) == ("none", 3)


AGGREGATES = [
    Aggregate("z1", "z1", metadata={"availability_zone": "zone1"}),
    Aggregate("z1b", "z1b", metadata={"availability_zone": "zone1"}),
    Aggregate("z2", "z2", metadata={"availability_zone": "zone2"}),
    Aggregate("tenant", "tenant", metadata={"filter_tenant_id1": "p"}),
    Aggregate("isolated", "isolated", metadata={"trait:CUSTOM_LICENCE": "required"}),
]


@pytest.mark.parametrize(
    ("spec", "prefilters", "member_of", "forbidden"),
    [
        ({}, {}, [], set()),
        ({"availability_zone": "zone1"}, {}, [{"z1", "z1b"}], set()),
        # The default zone is where no other zone is.
        ({"availability_zone": "nova"}, {}, [], {"z1", "z1b", "z2"}),
        ({}, {"limit_tenants": True}, [{"tenant"}], set()),
        ({"project_id": "q"}, {"limit_tenants": True}, [], set()),
        ({"availability_zone": "zone2"}, {"limit_tenants": True}, [{"z2"}, {"tenant"}], set()),
        ({}, {"isolated_aggregates": True}, [], {"isolated"}),
        ({"extra_specs": {"trait:CUSTOM_LICENCE": "required"}}, {"isolated_aggregates": True}, [], set()),
    ],
)
def test_aggregates_narrow_the_query(
    make_spec: MakeSpec, spec: Any, prefilters: Any, member_of: list[set[str]], forbidden: set[str]
) -> None:
    asked = candidates_request(make_spec(**spec), AGGREGATES, Prefilters(**prefilters))
    assert asked.groups[0].member_of == member_of
    assert asked.groups[0].forbidden_aggregates == forbidden


def test_an_aggregate_may_bear_the_name_of_the_default_zone(make_spec: MakeSpec) -> None:
    named = Aggregate("named", "named", metadata={"availability_zone": "nova"})
    asked = candidates_request(make_spec(availability_zone="nova"), [*AGGREGATES, named], Prefilters())
    assert asked.groups[0].member_of == []
    assert asked.groups[0].forbidden_aggregates == {"z1", "z1b", "z2"}


def test_zones_and_projects_without_aggregates_have_no_host(make_spec: MakeSpec) -> None:
    with pytest.raises(errors.NoValidHost, match="availability zone zone9"):
        candidates_request(make_spec(availability_zone="zone9"), AGGREGATES, Prefilters())
    strict = Prefilters(limit_tenants=True, aggregate_required_for_tenants=True)
    with pytest.raises(errors.NoValidHost, match="project"):
        candidates_request(make_spec(project_id="q"), AGGREGATES, strict)


def full_spec(make_spec: MakeSpec) -> RequestSpec:
    return make_spec(
        image=ImageMeta("image"),
        is_volume_backed=True,
        num_instances=2,
        availability_zone="zone1",
        server_group=RequestedGroup("group", "anti-affinity", {"max_server_per_host": 2}),
        scheduler_hints={"group": ["group"]},
        requested_destination=Destination(host="host", cell="cell", allow_cross_cell_move=True),
        ignore_hosts=["host"],
        force_hosts=["host"],
        requested_resources=[RequestGroup("_port", {"CUSTOM_A": 1})],
        same_subtree=[{"_port"}],
        limits={"memory_mb": 1},
    )


def test_what_belongs_to_one_request_is_never_kept(make_spec: MakeSpec) -> None:
    spec = full_spec(make_spec)
    kept = spec.to_persist()
    assert kept.keys() == PERSISTED
    again = RequestSpec.from_persisted(kept)
    plain = make_spec()
    for name in RequestSpec.__dataclass_fields__:
        assert getattr(again, name) == getattr(spec if name in PERSISTED else plain, name), name


def test_a_spec_that_another_version_wrote_is_read(make_spec: MakeSpec) -> None:
    stored = full_spec(make_spec).to_persist() | {"ignore_hosts": ["host"], "of_the_future": 1}
    assert RequestSpec.from_persisted(stored).ignore_hosts == []


def test_a_spec_crosses_rpc_as_json(make_spec: MakeSpec) -> None:
    spec = full_spec(make_spec)
    assert msgspec.json.decode(msgspec.json.encode(spec), type=RequestSpec) == spec


def test_the_source_cell_is_preferred_only_if_other_cells_are_allowed(make_spec: MakeSpec) -> None:
    assert make_spec().preferred_cell is None
    assert make_spec(requested_destination=Destination(cell="c")).preferred_cell is None
    both = Destination(cell="c", allow_cross_cell_move=True)
    assert make_spec(requested_destination=both).preferred_cell == "c"


def test_firmware_and_tpm_require_traits_of_hosts(make_spec: MakeSpec) -> None:
    """Always; what other properties of an image name only with [scheduler] image_metadata_prefilter."""
    properties = {"hw_firmware_type": "uefi", "hw_tpm_version": "2.0", "hw_video_model": "qxl", "hw_disk_bus": "scsi"}
    spec = make_spec(image=ImageMeta("image", properties=dict(properties)))
    asked = candidates_request(spec, [], Prefilters())
    traits = {"COMPUTE_FIRMWARE_UEFI", "COMPUTE_SECURITY_TPM_2_0", "COMPUTE_SECURITY_TPM_TIS"}
    assert asked.groups[0].required == traits
    assert not asked.root_required
    asked = candidates_request(spec, [], Prefilters(image_metadata=True))
    assert asked.root_required == {"COMPUTE_GRAPHICS_MODEL_QXL", "COMPUTE_STORAGE_BUS_SCSI"}
    assert spec.image is not None
    spec.image.properties["hw_video_model"] = "of the future"
    assert not candidates_request(spec, [], Prefilters(image_metadata=True)).root_required
