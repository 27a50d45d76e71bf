"""What operations cost: how many SQL statements, RPCs and HTTP calls each makes. The numbers are exact.

A change of one of them must be meant. More of them makes every move slower for everybody: say why in the commit's message.
Fewer: put the new number here. `python -m benchmarks` shows the same numbers beside the peer's, and how long it all takes.

Instructions are held within 5 % of what was recorded for this kind of Python (`benchmarks.recorded`), where they can be counted.
Fewer than that, and meant: ``make bench BENCH="--record"``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks import operations, peer, recorded
from benchmarks.cloud import MeasuredCloud
from benchmarks.counting import Counts, typical
from benchmarks.instructions import Meter

pytestmark = pytest.mark.embedded("counts statements and calls inside one process")

COSTS: dict[str, dict[str, dict[str, int]]] = {
    "resize": {
        # The record in the source's cell, with which offers of the source and ports are compared, comes with its address.
        "sql": {"API": 24, "cell1": 14, "cell2": 9},
        "rpc": {
            "cast conductor.run_move": 1,
            "call scheduler.select_destinations": 1,
            "call compute.prep_snapshot_based_resize_at_dest": 1,
            # a round while the guest runs
            "call compute.begin_round": 1,
            "call compute.receive_round": 1,
            "call compute.prep_snapshot_based_resize_at_source": 1,
            "call compute.finish_snapshot_based_resize_at_dest": 1,
            # network-vif-plugged goes to both hosts
            "cast conductor.external_events": 1,
            "cast compute.external_instance_events": 2,
        },
        "placement": {"GET /allocation_candidates": 1, "POST /allocations": 1},
        "http": {
            # may the server leave its cell?
            "network GET /v2.0/ports": 2,
            "network POST /v2.0/ports/{port_id}/bindings": 1,
            "network PUT /v2.0/ports/{port_id}/bindings/{host}/activate": 1,
            "compute POST /v2.1/os-server-external-events": 1,
            # is the base image still there? Its hosts reach one another, so no image is made
            "image GET /v2/images/{image_id}": 1,
        },
    },
    "confirm": {
        # the host that keeps the server shows it first: a step, the server with its host's service, the other host's, an RPC;
        # before the source is ordered to delete, and as the target of a revert, it is looked whether it is fenced
        "sql": {"API": 14, "cell1": 7, "cell2": 6},
        "rpc": {
            "cast conductor.run_move": 1,
            "call compute.verify_server": 1,
            "call compute.confirm_snapshot_based_resize_at_source": 1,
            "call compute.inspect_instance": 1,
        },
        "placement": {"DELETE /allocations/{consumer}": 1},
        "http": {"network DELETE /v2.0/ports/{port_id}/bindings/{host}": 1},
    },
    "revert": {
        "sql": {"API": 19, "cell1": 10, "cell2": 13},
        "rpc": {
            "cast conductor.run_move": 1,
            "call compute.verify_server": 1,
            "call compute.drop_move_at_dest": 1,
            "call compute.restore_at_source": 1,
            "cast conductor.external_events": 1,
            "cast compute.external_instance_events": 2,
        },
        "placement": {"POST /allocations": 1},
        "http": {
            "network GET /v2.0/ports": 1,
            "network PUT /v2.0/ports/{port_id}/bindings/{host}/activate": 1,
            "network DELETE /v2.0/ports/{port_id}/bindings/{host}": 1,
            "compute POST /v2.1/os-server-external-events": 1,
        },
    },
    # like the cross-cell one; its records stay where they are
    "same-cell": {
        "sql": {"API": 23, "cell1": 16, "cell2": 1},
        "rpc": {
            "cast conductor.run_move": 1,
            "call scheduler.select_destinations": 1,
            "call compute.prep_snapshot_based_resize_at_dest": 1,
            "call compute.begin_round": 1,
            "call compute.receive_round": 1,
            "call compute.prep_snapshot_based_resize_at_source": 1,
            "call compute.finish_snapshot_based_resize_at_dest": 1,
            "cast conductor.external_events": 1,
            "cast compute.external_instance_events": 2,
        },
        "placement": {"GET /allocation_candidates": 1, "POST /allocations": 1},
        "http": {
            "network GET /v2.0/ports": 2,
            "network POST /v2.0/ports/{port_id}/bindings": 1,
            "network PUT /v2.0/ports/{port_id}/bindings/{host}/activate": 1,
            "compute POST /v2.1/os-server-external-events": 1,
            "image GET /v2/images/{image_id}": 1,
        },
    },
    "same-cell confirm": {
        "sql": {"API": 13, "cell1": 8},
        "rpc": {
            "cast conductor.run_move": 1,
            "call compute.verify_server": 1,
            "call compute.confirm_snapshot_based_resize_at_source": 1,
            "call compute.inspect_instance": 1,
        },
        "placement": {"DELETE /allocations/{consumer}": 1},
        "http": {"network DELETE /v2.0/ports/{port_id}/bindings/{host}": 1},
    },
    # what the project has is counted in its cells; ten of the API's are the journal's; one adds to what the project was accepted
    "create": {
        "sql": {"API": 18, "cell1": 9, "cell2": 1},
        "rpc": {
            "cast conductor.run_move": 1,
            "call scheduler.select_destinations": 1,
            "call compute.build_guest": 1,
            "cast conductor.external_events": 1,
            "cast compute.external_instance_events": 1,
        },
        "placement": {"GET /allocation_candidates": 1, "PUT /allocations/{consumer}": 1},
        "http": {
            "image GET /v2/images/{image_id}": 1,
            "network GET /v2.0/networks": 1,
            "network GET /v2.0/quotas/{project_id}/details": 1,
            "network POST /v2.0/ports": 1,
            "network PUT /v2.0/ports/{port_id}": 1,
            "network GET /v2.0/ports": 2,
            "compute POST /v2.1/os-server-external-events": 1,
        },
    },
    "attach": {
        "sql": {"API": 5, "cell1": 11},
        "rpc": {"call conductor.add_volume": 1, "call compute.connect_volume": 1},
        "placement": {},
        "http": {
            # the API's look, and the conductor's
            "volume GET /v3/{project_id}/volumes/{volume_id}": 2,
            "volume POST /v3/{project_id}/attachments": 1,
            "volume PUT /v3/{project_id}/attachments/{attachment_id}": 1,
            "volume POST /v3/{project_id}/attachments/{attachment_id}/action": 1,
        },
    },
    "detach": {
        "sql": {"API": 7, "cell1": 9},
        "rpc": {"cast conductor.run_move": 1, "call compute.disconnect_volume": 1},
        "placement": {},
        "http": {"volume DELETE /v3/{project_id}/attachments/{attachment_id}": 1},
    },
    "attach port": {
        "sql": {"API": 6, "cell1": 10},
        "rpc": {
            "call conductor.add_port": 1,
            "call compute.plug_port": 1,
            "cast conductor.external_events": 1,
            "cast compute.external_instance_events": 1,
        },
        "placement": {},
        "http": {
            "network GET /v2.0/networks": 1,
            "network GET /v2.0/quotas/{project_id}/details": 1,
            "network POST /v2.0/ports": 1,
            "network PUT /v2.0/ports/{port_id}": 1,
            "network GET /v2.0/ports": 1,
            "compute POST /v2.1/os-server-external-events": 1,
        },
    },
    # with what the network service reports of the deleted port, when all else is done
    "detach port": {
        "sql": {"API": 8, "cell1": 10},
        "rpc": {
            "cast conductor.run_move": 1,
            "call compute.unplug_port": 1,
            "cast conductor.external_events": 1,
            "cast compute.external_instance_events": 1,
        },
        "placement": {},
        "http": {"network DELETE /v2.0/ports/{port_id}": 1, "compute POST /v2.1/os-server-external-events": 1},
    },
    "shelve": {
        # Most of the API's are the journal's; each step looks anew at what is there, one at whether the host stores images.
        "sql": {"API": 12, "cell1": 22},
        "rpc": {"cast conductor.run_move": 1, "call compute.upload_disk": 1, "call compute.remove_guest": 1},
        "placement": {"DELETE /allocations/{consumer}": 1},
        "http": {
            "image POST /v2/images": 1,
            "image PUT /v2/images/{image_id}/file": 1,
            # before the disks go: is it complete?
            "image GET /v2/images/{image_id}": 1,
            "network PUT /v2.0/ports/{port_id}": 1,
        },
    },
    "unshelve": {
        "sql": {"API": 14, "cell1": 13},
        "rpc": {
            "cast conductor.run_move": 1,
            "call scheduler.select_destinations": 1,
            "call compute.rebuild_guest": 1,
            "cast conductor.external_events": 1,
            "cast compute.external_instance_events": 1,
        },
        "placement": {"GET /allocation_candidates": 1, "PUT /allocations/{consumer}": 1},
        "http": {
            # the API looks whether it may boot here, and the host at what it downloads
            "image GET /v2/images/{image_id}": 2,
            "image GET /v2/images/{image_id}/file": 1,
            "image DELETE /v2/images/{image_id}": 1,
            "network PUT /v2.0/ports/{port_id}": 1,
            "network GET /v2.0/ports": 3,
            "compute POST /v2.1/os-server-external-events": 1,
        },
    },
    # the network service reports the deleted port when its server is gone: two of the statements look for that, and find nothing
    "delete": {
        "sql": {"API": 10, "cell1": 11},
        "rpc": {"cast conductor.run_move": 1, "call compute.remove_guest": 1},
        "placement": {"DELETE /allocations/{consumer}": 1},
        "http": {
            # which ports has it, whatever its record names?
            "network GET /v2.0/ports": 1,
            "network DELETE /v2.0/ports/{port_id}": 1,
            "compute POST /v2.1/os-server-external-events": 1,
        },
    },
    # its mapping with its server group, its row with tags and volumes
    "show": {"sql": {"API": 1, "cell1": 1}, "rpc": {}, "placement": {}, "http": {}},
    # 200 servers over two cells: as many statements as for two, and none to cell0; some of both were moved not long ago, and are
    # looked at again (without them it would be 2, 1 and 1)
    "detail": {"sql": {"API": 3, "cell1": 2, "cell2": 2}, "rpc": {}, "placement": {}, "http": {}},
}


@pytest.fixture(scope="module")
def unmeasured() -> str:
    """Why instructions are not looked at; empty if they are."""
    meter = Meter()
    meter.close()
    if meter.refusal or recorded.load():
        return meter.refusal
    return f'none are recorded for {recorded.kind()}: make bench BENCH="--record"'


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, unmeasured: str) -> Iterator[dict[str, list[Counts]]]:
    """Counted on a cloud of its own, in which nothing else happens; several times if work is measured."""
    with MeasuredCloud(tmp_path_factory.mktemp("cloud"), quiet=True) as cloud:
        yield operations.count_all(cloud, 1 if unmeasured else 5)


@pytest.fixture(scope="module")
def counts(runs: dict[str, list[Counts]]) -> dict[str, Counts]:
    return {operation: of[-1] for operation, of in runs.items()}


@pytest.mark.parametrize("operation", COSTS)
@pytest.mark.parametrize("kind", ["sql", "rpc", "placement", "http"])
def test_an_operation_costs_exactly_this(counts: dict[str, Counts], operation: str, kind: str) -> None:
    assert dict(getattr(counts[operation], kind)) == COSTS[operation][kind]


@pytest.mark.parametrize("operation", COSTS)
def test_an_operation_takes_as_many_instructions_as_were_recorded(
    runs: dict[str, list[Counts]], unmeasured: str, operation: str
) -> None:
    if unmeasured:
        pytest.skip(unmeasured)
    spent = typical([run.spent for run in runs[operation]])
    assert spent.instructions == pytest.approx(recorded.load()[operation], rel=recorded.TOLERANCE)


def test_a_resize_takes_less_than_a_third_of_the_peers_own_statements(counts: dict[str, Counts]) -> None:
    """Own statements beside own. With Placement's on both sides, of which the peer's share is smaller: less than two fifths."""
    resize = counts["resize"]
    assert resize.total("sql") < peer.CALLS["sql"][0] / 3
    assert resize.total("sql") + resize.placement_sql < peer.CALLS["sql_with_placement"][0] * 2 / 5


def test_a_resize_takes_less_than_half_of_the_peers_other_calls(counts: dict[str, Counts]) -> None:
    assert counts["resize"].total("placement") < peer.CALLS["placement"][0] / 2
    assert counts["resize"].total("http") < peer.CALLS["http"][0] / 2
