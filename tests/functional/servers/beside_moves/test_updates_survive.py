"""What users change while their server moves is there afterwards, if the answer was 200."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from causeway import errors
from causeway.model.instance import Instance
from causeway.store import servers
from causeway.store.cell import copies, instances
from tests.functional.servers.moves_cloud import Cloud, until

CLOUD = {"overrides": {"moves": {"lease": 2.0}}}
WAYS = [pytest.param("gen2.small", id="cross-cell"), pytest.param("any.medium", id="same-cell")]


class Writer:
    """A user who changes one thing of a server again and again, and remembers what was accepted."""

    def __init__(self, cloud: Cloud, server: Any, change: Callable[[Any, str, int], Any]) -> None:
        self.accepted = 0
        self.refused: list[int] = []
        self._change = change
        self._compute, self._uuid = cloud.connection("demo").compute, server.id
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        count = 0
        while not self._stop.is_set():
            count += 1
            answer = self._change(self._compute, self._uuid, count)
            if answer.status_code < 300:
                self.accepted = count
            else:
                self.refused.append(answer.status_code)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()


def put_metadata(compute: Any, uuid: str, count: int) -> Any:
    return compute.put(f"/servers/{uuid}/metadata/count", json={"meta": {"count": str(count)}})


def put_tags(compute: Any, uuid: str, count: int) -> Any:
    return compute.put(f"/servers/{uuid}/tags", json={"tags": [f"count-{count}"]}, microversion="2.26")


def rename(compute: Any, uuid: str, count: int) -> Any:
    return compute.put(f"/servers/{uuid}", json={"server": {"name": f"count-{count}"}})


def lock(compute: Any, uuid: str, count: int) -> Any:
    body = {"lock": {"locked_reason": f"count-{count}"}}
    return compute.post(f"/servers/{uuid}/action", json=body, microversion="2.73")


def counts(found: Any) -> dict[str, int]:
    """What the server's record says of each writer's last change."""
    marks = {"tags": (found.tags or [""])[0], "name": found.name, "lock": found.locked_reason or ""}
    return {name: int(mark.removeprefix("count-")) for name, mark in marks.items() if mark.startswith("count-")} | {
        "metadata": int(found.metadata.get("count", 0))
    }


@pytest.mark.parametrize("flavor", WAYS)
def test_no_change_is_lost_while_a_server_moves_and_goes_back(cloud: Cloud, flavor: str) -> None:
    server = cloud.boot(flavor="gen1.small")
    writers = {
        name: Writer(cloud, server, change)
        for name, change in (("metadata", put_metadata), ("tags", put_tags), ("name", rename))
    }
    locker = Writer(cloud, server, lock)
    with writers["metadata"].at_work(), writers["tags"].at_work(), writers["name"].at_work():
        cloud.resized(server, flavor)
        # A lock keeps the user from reverting: it comes now, from an own thread, and an administrator reverts.
        with locker.at_work():
            cloud.admin.compute.revert_server_resize(server.id)
            cloud.wait(server, "ACTIVE")
    cloud.settle()
    accepted = {name: writer.accepted for name, writer in (writers | {"lock": locker}).items()}
    assert min(accepted.values()) > 0
    assert counts(cloud.show(server)) == accepted
    assert {code for writer in writers.values() for code in writer.refused} <= {409}


CHANGES = [
    pytest.param(put_metadata, id="metadata"),
    pytest.param(put_tags, id="tags"),
    pytest.param(rename, id="name"),
    pytest.param(lock, id="lock"),
]


def in_the_window(monkeypatch: pytest.MonkeyPatch, cell: str, then: Callable[[], None]) -> None:
    """Calls ``then`` once between the last read of a server's records and the switch of its mapping."""
    write, done = copies.write, list[Any]()

    def written(database: Any, bundle: copies.Bundle, **named: Any) -> None:
        if database.name == cell and bundle.actions and not done:
            done.append(bundle.instance.uuid)
            then()
        write(database, bundle, **named)

    monkeypatch.setattr(copies, "write", written)


@pytest.mark.embedded("looks at a move from inside")
@pytest.mark.parametrize("way", ["there", "back"])
@pytest.mark.parametrize("change", CHANGES)
def test_who_comes_between_the_last_read_and_the_switch_waits_for_it(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, change: Any, way: str
) -> None:
    server = cloud.boot(flavor="gen1.small")
    answers: list[int] = []
    asked = threading.Event()
    look = servers._opened

    def looked(*arguments: Any) -> bool:
        asked.set()
        return look(*arguments)

    def ask() -> None:
        answers.append(change(cloud.connection("demo").compute, server.id, 7).status_code)
        asked.set()

    thread = threading.Thread(target=ask)

    def come() -> None:
        thread.start()
        assert asked.wait(30)

    monkeypatch.setattr(servers, "_opened", looked)
    if way == "there":
        in_the_window(monkeypatch, "cell2", come)
        cloud.resized(server)
    else:
        cloud.resized(server)
        in_the_window(monkeypatch, "cell1", come)
        cloud.reverted(server)
    thread.join()
    cloud.settle()
    found = cloud.show(server)
    if answers == [409]:
        # A server that waits for confirm or revert refuses changes of its metadata and tags.
        assert way == "back" and change in (put_metadata, put_tags)
    else:
        assert len(answers) == 1 and answers[0] in (200, 202)
        assert 7 in counts(found).values()


@pytest.mark.embedded("looks at a move from inside")
def test_records_that_a_move_closed_are_open_again_when_it_is_undone(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = cloud.boot(flavor="gen1.small")
    monkeypatch.setattr(servers, "PATIENCE", 0.0)
    refused: list[Any] = []

    def fail() -> None:
        refused.append(put_metadata(cloud.connection("demo").compute, server.id, 1))
        raise errors.OperationFailed("The copy can't be written.")

    in_the_window(monkeypatch, "cell2", fail)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    [answer] = refused
    assert answer.status_code == 409 and "handed over to another cell" in answer.text
    assert put_metadata(cloud.member.compute, server.id, 2).status_code == 200
    assert cloud.show(server).metadata == {"count": "2"}


@pytest.mark.embedded("looks at a move from inside")
def test_records_whose_move_has_ended_are_opened_by_whoever_finds_them(cloud: Cloud) -> None:
    server = cloud.boot(flavor="gen1.small")
    with cloud.cell("cell1").write() as connection:
        instances.close_in(connection, server.id, "a-move-that-nobody-knows")
    assert put_metadata(cloud.member.compute, server.id, 3).status_code == 200


@pytest.mark.embedded("looks at a move from inside")
@pytest.mark.parametrize("step", ["MoveRecord", "ReturnRecord"])
def test_inside_a_cell_the_living_row_is_never_replaced(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """What users change between the read and the write of the move's own columns stays: it is another column."""
    server = cloud.boot(flavor="gen1.small")
    if step == "ReturnRecord":
        cloud.resized(server, "any.medium")
    inserted: list[str] = []
    insert = instances.insert

    def noted(connection: Any, instance: Instance, **named: Any) -> None:
        inserted.append(instance.uuid)
        insert(connection, instance, **named)

    monkeypatch.setattr(instances, "insert", noted)
    rename(cloud.member.compute, server.id, 5)
    if step == "MoveRecord":
        cloud.resized(server, "any.medium")
    else:
        cloud.reverted(server)
    until(lambda: cloud.show(server).name, lambda name: name == "count-5", "the name to be there")
    assert inserted == []
