"""When the compute service of a host that Nova had is started and ended, whatever fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from causeway import errors
from causeway.compute.adopting.ownership import IDENTITY, Ownership
from causeway.compute.adopting.service import AdoptingService
from causeway.conf import new_config
from causeway.model.found_host import FoundHypervisor, NovaProcess
from causeway.rpc.transport import Transports

NODE = "6f1c2f7e-7c0b-4a51-a6e4-2d1a4a9a3f10"


class Compute:
    """A compute service that says what is asked of it."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def start(self) -> None:
        if self._host.start_fails:
            raise errors.ServiceFailed("Placement does not answer.")
        self._host.log.append("start")

    def stop(self) -> None:
        self._host.log.append("stop")

    def work_under_way(self) -> list[str]:
        return self._host.under_way

    def close_to_new(self, reason: str | None) -> None:
        self._host.log.append(f"close: {reason}")


class Host:
    def __init__(self, folder: Path, transports: Transports) -> None:
        self.nova, state = folder / "nova", folder / "state"
        self.nova.mkdir()
        state.mkdir()
        (self.nova / IDENTITY).write_text(NODE)
        self.log: list[str] = []
        self.under_way: list[str] = []
        self.processes: list[NovaProcess] = []
        self.start_fails = False
        self.ownership = Ownership(state, [self.nova])
        self.service = AdoptingService(
            "host1",
            transports.get("causeway-memory://adopting-service"),
            self.ownership,
            look=FoundHypervisor,
            make=lambda: Compute(self),
            processes=lambda: self.processes,
        )


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    transports = Transports(new_config())
    yield Host(tmp_path, transports)
    transports.cleanup()


def test_a_host_is_not_released_while_orders_are_carried_out(host: Host) -> None:
    host.service.take(NODE, [])
    host.under_way = ["f3b65539-293f-4cca-b4a8-5a9029f73b9f"]
    with pytest.raises(errors.Conflict, match="carried out") as refused:
        host.service.release()
    assert host.under_way[0] in refused.value.details
    assert host.ownership.is_taken and host.service.is_owner and host.log == ["start"]
    host.under_way = []
    host.service.release()
    assert not host.ownership.is_taken and not host.service.is_owner and host.log == ["start", "stop"]


def test_a_host_that_can_not_be_released_is_served_on(host: Host) -> None:
    host.service.take(NODE, [])
    (host.nova / IDENTITY).write_text("00000000-1111-4222-8333-444444444444")
    with pytest.raises(errors.Conflict, match="differ"):
        host.service.release()
    assert host.ownership.is_taken and host.service.is_owner and host.log == ["start"]
    (host.nova / IDENTITY).unlink()
    host.service.release()
    assert not host.ownership.is_taken and host.log == ["start", "stop"]


def test_a_host_whose_compute_service_can_not_start_is_ours_all_the_same_and_is_started_with_the_next_take(
    host: Host,
) -> None:
    host.start_fails = True
    with pytest.raises(errors.ServiceFailed):
        host.service.take(NODE, [])
    assert host.ownership.is_taken and not host.service.is_owner and host.log == ["stop"]
    host.start_fails = False
    host.service.take(NODE, [])
    assert host.service.is_owner and host.log == ["stop", "start"]


def test_a_take_that_is_repeated_starts_nothing_twice(host: Host) -> None:
    host.service.take(NODE, [])
    host.service.take(NODE, ["other guests, by now"])
    assert host.log == ["start"]


def test_a_second_owner_is_reported_as_long_as_it_is_there(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    host.service.watch()
    assert host.log == []
    host.service.take(NODE, [])
    host.processes.append(NovaProcess(17, "nova-compute"))
    host.service.watch()
    host.service.watch()
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1
    host.processes.clear()
    host.service.watch()
    first, second, third = host.log[1:]
    assert first == second and "process 17" in first and third == "close: None"
