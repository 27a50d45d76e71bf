"""Servers move where every message has to be signed."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.metrics import RPC_CHECKED
from causeway.rpc.keys import CONTROL, make_pair
from tests.functional.servers.moves_cloud import Cloud

pytestmark = pytest.mark.embedded("its processes share one key")


@pytest.fixture(scope="module")
def cloud_options(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp("keys")
    (directory / CONTROL).mkdir()
    make_pair(directory / "key.pem", directory / CONTROL / "cloud.pem")
    options = {"private_key": str(directory / "key.pem"), "trusted_keys": str(directory), "required": True}
    return {"overrides": {"rpc_signatures": options}}


def counted() -> dict[str, float]:
    """topic and outcome -> messages; of this process, so of other clouds too."""
    (metric,) = RPC_CHECKED.collect()
    return {
        f"{sample.labels['topic']} {sample.labels['outcome']}": sample.value
        for sample in metric.samples
        if sample.name.endswith("_total")
    }


def test_a_move_to_another_cell_and_back(cloud: Cloud) -> None:
    before = counted()
    server = cloud.boot()
    cloud.resized(server)
    cloud.member.compute.revert_server_resize(server.id)
    cloud.wait(server, "ACTIVE")
    cloud.resized(server)
    cloud.member.compute.confirm_server_resize(server.id)
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    changed = {name for name, count in counted().items() if count > before.get(name, 0)}
    assert changed >= {f"{topic} signed" for topic in ("compute", "conductor", "scheduler")}
    # Hosts may have reported before only: they did when they started.
    assert counted()["cell_conductor signed"] > 0
    assert {name.partition(" ")[2] for name in changed} == {"signed"}
