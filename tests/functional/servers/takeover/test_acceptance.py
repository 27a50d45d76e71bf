"""A request for a move: what was refused never runs, what was accepted is there and runs.

Every write of a request is lost before and after it took effect, the process dies there, and a conductor comes between any two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from causeway import errors
from causeway.context import RequestContext
from causeway.moves import requests as moves
from causeway.requests import acceptance
from causeway.requests.acceptance import delete_if_refused
from causeway.requests.of_servers import Requests
from causeway.rpc.conductor import ConductorClient
from causeway.store.api import flavors, journal
from causeway.store.cell import actions, instances
from causeway.store.database import Database
from tests.functional.servers.moves_cloud import Cloud, until

pytestmark = pytest.mark.embedded("calls what the API calls, and breaks it in the middle")
CLOUD = {"overrides": {"moves": {"lease": 1.0}}}

WRITES = ["_propose", "_swap", "_accept"]
RECIPES = ["resize", "confirm", "revert"]
NAMES = {"resize": "resize", "confirm": "confirmResize", "revert": "revertResize"}


class ProcessDiedError(BaseException):
    """What nobody catches: as if the process had ended here."""


class Asker:
    """Asks for moves as the API does, in the thread of the test."""

    def __init__(self, cloud: Cloud, server: Any, recipe: str) -> None:
        self.cloud, self.server, self.recipe = cloud, server, recipe
        if recipe != "resize":
            cloud.resized(server)
            cloud.settle()
        self.before = self.seen()
        parts = cloud.parts
        self.api: Database = parts.api_database
        conductor = ConductorClient(parts.around.transports.get(parts.conf.transport_url))
        self.services = Requests(parts.conf, parts.api_database, parts.cells, conductor)
        self.context = RequestContext(project_id=server.project_id, user_id=server.user_id)

    def seen(self) -> Any:
        found = self.cloud.show(self.server)
        return (found.status, found.task_state, found.compute_host, self.cloud.hosts_of(self.server))

    def ask(self) -> None:
        cell, database = self.services.cells.of_server(self.server.id)
        instance = instances.get(database, self.server.id)
        if self.recipe == "resize":
            flavor = flavors.get(self.api, "gen2.small")
            moves.request_resize(
                self.services,
                self.context,
                instance,
                flavor=flavor,
                host=None,
                cross_cell_allowed=True,
                cell_uuid=cell.uuid,
            )
        elif self.recipe == "confirm":
            moves.request_confirm(self.services, self.context, instance, cell_uuid=cell.uuid)
        else:
            moves.request_revert(self.services, self.context, instance, cell_uuid=cell.uuid)

    def check_ran(self) -> None:
        wanted = {"resize": "VERIFY_RESIZE", "confirm": "ACTIVE", "revert": "ACTIVE"}[self.recipe]
        self.cloud.wait(self.server, wanted)
        self.cloud.settle()
        host = self.cloud.show(self.server).compute_host
        assert host.startswith("cell1" if self.recipe == "revert" else "cell2")
        assert self.cloud.actions(self.server).count(NAMES[self.recipe]) == 1
        found = self.cloud.action(self.server, NAMES[self.recipe])
        assert found.message is None
        status = {"resize": "finished", "confirm": "confirmed", "revert": "reverted"}[self.recipe]
        assert self.cloud.migration(self.server).status == status

    def check_never_ran(self) -> None:
        until(lambda: journal.unfinished(self.api), lambda found: not found, "the request to be gone from the journal")
        assert self.seen() == self.before
        migrations = [found.status for found in self.cloud.admin.compute.migrations(instance_uuid=self.server.id)]
        assert migrations == ([] if self.recipe == "resize" else ["finished"])
        _cell, database = self.services.cells.of_server(self.server.id)
        found = actions.get(database, self.server.id, self.context.request_id)
        assert found is None or (found.message == acceptance.NOT_ACCEPTED and not found.events)
        # It is nobody's: the next request is taken.
        self.context = RequestContext(project_id=self.server.project_id, user_id=self.server.user_id)
        self.ask()
        until(lambda: self.cloud.show(self.server), lambda found: found.task_state is None, "the next one to end")
        self.cloud.settle()


def break_write(
    monkeypatch: pytest.MonkeyPatch, step: str, *, before: bool, failure: BaseException, lasts: bool = False
) -> None:
    """The first write of a step fails, before or after it took effect; ``lasts``: and everything else that is written then."""
    inside: list[str] = []
    broken: list[str] = []
    write, work = Database.write, getattr(acceptance, step)

    def working(*arguments: Any, **named: Any) -> Any:
        inside.append(step)
        try:
            return work(*arguments, **named)
        finally:
            inside.clear()

    @contextmanager
    def writing(self: Database) -> Iterator[Any]:
        breaks = bool(inside) and not broken
        if breaks:
            broken.append(step)
        elif broken and lasts and not is_conductor():
            raise failure
        with write(self) as connection:
            yield connection
            if breaks and before:
                raise failure
        if breaks:
            raise failure

    monkeypatch.setattr(acceptance, step, working)
    monkeypatch.setattr(Database, "write", writing)


def is_conductor() -> bool:
    import threading

    return threading.current_thread() is not threading.main_thread()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptance, "PAUSES", (0.01, 0.01))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("before", [True, False], ids=["not-written", "written"])
@pytest.mark.parametrize("step", WRITES)
@pytest.mark.parametrize("recipe", RECIPES)
def test_an_answer_that_is_lost(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, recipe: str, step: str, before: bool
) -> None:
    asker = Asker(cloud, cloud.boot(), recipe)
    with monkeypatch.context() as patched:
        break_write(patched, step, before=before, failure=errors.DatabaseFailed("lost", details="lost"))
        try:
            asker.ask()
            accepted = True
        except errors.DatabaseFailed:
            accepted = False
    # Whether the swap took effect can be asked, and acceptance is repeated.
    assert accepted is (step == "_accept" or (step == "_swap" and not before))
    (asker.check_ran if accepted else asker.check_never_ran)()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("before", [True, False], ids=["not-written", "written"])
@pytest.mark.parametrize("step", WRITES)
@pytest.mark.parametrize("recipe", RECIPES)
def test_databases_that_stay_unreachable_refuse(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, recipe: str, step: str, before: bool
) -> None:
    """Nothing can be found out any more: what is refused then does not run later, but for an acceptance that was written."""
    asker = Asker(cloud, cloud.boot(), recipe)
    with monkeypatch.context() as patched:
        failure = errors.DatabaseFailed("away", details="away")
        break_write(patched, step, before=before, failure=failure, lasts=True)
        with pytest.raises(errors.DatabaseFailed):
            asker.ask()
    if step == "_accept" and not before:
        asker.check_ran()
    else:
        asker.check_never_ran()


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("step", WRITES)
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_request_whose_process_dies_runs_whole_or_not_at_all(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, recipe: str, step: str, before: bool
) -> None:
    """Nobody got an answer: it runs whole, or not at all."""
    asker = Asker(cloud, cloud.boot(), recipe)
    with monkeypatch.context() as patched:
        break_write(patched, step, before=before, failure=ProcessDiedError(), lasts=True)
        with pytest.raises(ProcessDiedError):
            asker.ask()
    if step == "_accept" and not before:
        asker.check_ran()
    else:
        asker.check_never_ran()


def between(monkeypatch: pytest.MonkeyPatch, step: str, then: Callable[[], None]) -> None:
    """Calls ``then`` once before a step of a request begins."""
    work, done = getattr(acceptance, step), list[Any]()

    def working(*arguments: Any, **named: Any) -> Any:
        if not done:
            done.append(step)
            then()
        return work(*arguments, **named)

    monkeypatch.setattr(acceptance, step, working)


@pytest.mark.parametrize("step", ["_swap", "_accept"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_an_api_that_is_slow_is_taken_for_dead_and_begins_again(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, recipe: str, step: str
) -> None:
    asker = Asker(cloud, cloud.boot(), recipe)

    def keeper() -> None:
        [move] = journal.unfinished(asker.api)
        assert delete_if_refused(asker.api, asker.services.cells, move)

    between(monkeypatch, step, keeper)
    asker.ask()
    asker.check_ran()


@pytest.mark.parametrize("when", ["_propose", "_swap", "_accept"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_conductor_that_refused_and_undoes_late_does_no_harm(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, recipe: str, when: str
) -> None:
    """It refuses before the swap's acceptance; what it undoes comes while the request begins again."""
    asker = Asker(cloud, cloud.boot(), recipe)
    old: list[Any] = []

    def refuse() -> None:
        [move] = journal.unfinished(asker.api)
        assert acceptance.refuse(asker.api, move)
        old.append(move)
        between(monkeypatch, when, lambda: acceptance.settle(asker.api, asker.services.cells, old[0]))

    between(monkeypatch, "_accept", refuse)
    asker.ask()
    assert old
    asker.check_ran()


def test_a_move_that_is_only_proposed_is_run_by_nobody(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even if it is ordered to: a message may be late, or wrong."""
    asker = Asker(cloud, cloud.boot(), "resize")

    def notify() -> None:
        [move] = journal.unfinished(asker.api)
        assert journal.acquire(asker.api, move.id, "somebody", 1.0) is None

    between(monkeypatch, "_accept", notify)
    asker.ask()
    asker.check_ran()


def test_a_delete_that_saw_a_request_which_came_to_nothing_is_done(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = cloud.boot()
    asker = Asker(cloud, server, "resize")
    between(monkeypatch, "_swap", lambda: cloud.member.compute.delete_server(server.id))
    with pytest.raises((errors.StateChanged, errors.ServerNotFound)):
        asker.ask()
    until(lambda: cloud.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")
    assert cloud.hosts_of(server) == {}


def test_an_image_of_a_request_that_was_refused_is_deleted_as_soon_as_that_can_be_done(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The image service is unavailable when the API abandons it: the request stays in the journal until its image is gone."""
    server = cloud.boot()

    def refuse(_api: Database, _request: acceptance.Request) -> bool:
        cloud.fail("status", "/images", service="image", method="DELETE", status=503)
        raise errors.StateChanged("Another request was quicker.")

    monkeypatch.setattr(acceptance, "_accept", refuse)
    answer = cloud.member.compute.post(f"/servers/{server.id}/action", json={"createImage": {"name": "never made"}})
    assert answer.status_code == 409
    assert [image.name for image in cloud.member.image.images(name="never made")] == ["never made"]
    assert [each.state for each in journal.of_server(cloud.parts.api_database, server.id)] == ["done", "refused"]
    monkeypatch.undo()
    cloud.heal()
    until(lambda: list(cloud.member.image.images(name="never made")), lambda left: not left, "the image to go")
    until(
        lambda: [each.recipe for each in journal.of_server(cloud.parts.api_database, server.id)],
        lambda left: left == ["build"],
        "the request to go",
    )
    assert cloud.show(server).task_state is None
