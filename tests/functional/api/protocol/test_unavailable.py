"""What this cloud does not have: one list, shown by docs/features.md, answered with 501 after everything else was checked."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import causeway.api
from causeway.api.unavailable import Unavailable, as_table
from causeway.model.instance import Instance
from causeway.model.states import VmState
from causeway.store.cell import instances

ROOT = Path(__file__).parents[4]
VOLUME = "22222222-2222-3333-4444-555555555555"


def test_the_document_shows_the_list() -> None:
    assert as_table() in (ROOT / "docs" / "features.md").read_text(), f"docs/features.md should have:\n{as_table()}"


def test_nothing_but_the_list_answers_501() -> None:
    directory = Path(str(causeway.api.__file__)).parent
    using = {
        path.relative_to(directory).as_posix()
        for path in directory.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "NotImplementedHere"
    }
    assert using == {"unavailable.py"}


def test_every_line_of_the_list_is_refused(admin: Any, cloud: Any, server: Instance) -> None:
    refused = list(asked(admin, cloud, server))
    assert {answer.status for answer in refused} == {501}
    for one in set(Unavailable) - {Unavailable.UPTIME}:
        # That needs more than a server; it is tested with hypervisors.
        assert any(one.operation in answer.message and one.what in answer.message for answer in refused), one


def asked(admin: Any, cloud: Any, server: Instance) -> Iterator[Any]:
    path = f"/servers/{server.uuid}"
    yield admin.get("/os-baremetal-nodes", version="2.1")
    yield admin.get("/os-baremetal-nodes/1", version="2.1")
    yield admin.put("/os-hosts/host1", {"maintenance_mode": "enable"}, version="2.1")
    for name in ("startup", "shutdown", "reboot"):
        yield admin.get(f"/os-hosts/host1/{name}", version="2.1")
    instances.update(cloud.cell("cell1"), server.uuid, vm_state=VmState.STOPPED)
    yield admin.post(f"{path}/shares", {"share": {"share_id": VOLUME}})
