"""Lists of packages follow what these require; the room that an installation takes is added up without pip."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.unit.scripts.loaded import load


def reported(name: str, *requires: str) -> dict[str, Any]:
    """What pip reports of a package."""
    hashed = {"archive_info": {"hash": f"sha256={'0' * 64}"}}
    return {"metadata": {"name": name, "version": "1.0", "requires_dist": list(requires)}, "download_info": hashed}


@pytest.fixture
def lock() -> ModuleType:
    return load("lock_requirements")


def test_a_list_has_what_packages_require_and_not_what_is_left_out(lock: ModuleType) -> None:
    packages = {
        "oslo-service": reported("oslo.service", "eventlet>=0.27", "greenlet", "futurist; extra == 'threading'"),
        "greenlet": reported("greenlet", "old; python_version < '3'"),
        "futurist": reported("futurist", "oslo.service"),
        "eventlet": reported("eventlet", "dnspython"),
    }
    assert lock.closure([Requirement("oslo.service")], packages) == {"oslo-service", "greenlet"}
    with_threads = [Requirement("oslo.service"), Requirement("oslo.service[threading]")]
    assert lock.closure(with_threads, packages) == {"oslo-service", "greenlet", "futurist"}


def test_a_line_has_the_version_and_the_hash(lock: ModuleType) -> None:
    assert lock.line(reported("Name")) == f"Name==1.0 --hash=sha256:{'0' * 64}\n"


def test_requirements_are_those_of_all_distributions(lock: ModuleType) -> None:
    ours = lock.our_requirements()
    demo = {one.name for one in lock.of_others(ours, "causeway", ["demo"], set())}
    assert {"openstack-placement", "libvirt-python", "websocket-client", "SQLAlchemy", "click"} <= demo
    assert not {"causeway", "causeway-embedded", "pytest"} & demo


def test_room_is_added_up_without_pip(capsys: pytest.CaptureFixture[str]) -> None:
    measure = load("measure_install")
    sizes = {"pip": 15_000_000, "click": 1_000_000, "numpy": 75_000_000}
    assert measure.total(sizes) == 76.0
    measure.show(sizes, ["libvirt"], as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert (found["extras"], found["megabytes"]) == (["libvirt"], 76.0)
    assert list(found["packages"]) == ["numpy", "pip", "click"]
