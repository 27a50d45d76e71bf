"""The judge of a storm: it sees what is not as users were answered, and what does not fit; and nothing else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from causeway.model.drains import Drain, DrainRequest, DrainServer, DrainState, How, Scope
from causeway.moves.dead_hosts import IS_DEAD
from causeway.store.api import journal
from causeway.store.cell import copies, instances
from tests.faults.answers import Answer
from tests.faults.clouds.site import LocalSite, until
from tests.faults.moves import look
from tests.faults.storm import asking
from tests.faults.storm.asking import Scene
from tests.faults.storm.deeds import DEEDS, VALUE
from tests.faults.storm.drains import is_half_way
from tests.faults.storm.judge import Done, explained, judge
from tests.faults.storm.ledger import EXISTS, Account, Asked, Ledger, Seen

ACCEPTED, REFUSED, LOST = Answer(202), Answer(409), Answer(None)


@pytest.mark.parametrize(
    ("answers", "allowed"),
    [
        ([ACCEPTED], {"1"}),
        ([REFUSED], {None}),
        ([LOST], {None, "1"}),
        ([LOST, ACCEPTED], {"2"}),
        ([ACCEPTED, LOST], {"1", "2"}),
        ([ACCEPTED, REFUSED], {"1"}),
    ],
    ids=lambda value: "-".join(each.kind for each in value) if isinstance(value, list) else None,
)
def test_the_answers_decide_which_values_are_allowed(answers: list[Answer], allowed: set[str | None]) -> None:
    ledger = Ledger("server", on_volume=False)
    for number, answer in enumerate(answers, start=1):
        ledger.note_value(Asked("tag", answer, "x", str(number)))
    assert ledger.may_be("tag", "x") == allowed


@pytest.mark.parametrize(
    ("host", "left", "expected"),
    [(None, -1, True), (None, 1, False), ("cell1-host1", -1, False)],
    ids=["the drain took it off", "its user took it off later", "it is on a host"],
)
def test_a_server_that_its_user_shelved_after_a_drain_is_not_half_way(
    monkeypatch: pytest.MonkeyPatch, host: str | None, left: int, expected: bool
) -> None:
    ended = datetime(2026, 11, 26)
    drain = Drain(id="1", request=DrainRequest("drain 8", Scope()), state=DrainState.ROLLED_BACK, ended_at=ended)
    row = DrainServer(drain_id="1", instance_uuid="2", how=How.EVACUATE, began_at=ended - timedelta(minutes=5))
    offload = SimpleNamespace(recipe="shelve_offload", started_at=ended + timedelta(minutes=left))
    monkeypatch.setattr(look, "record", lambda *_: SimpleNamespace(host=host))
    monkeypatch.setattr(journal, "of_server", lambda *_: [offload])
    site: Any = SimpleNamespace(api=None)
    assert is_half_way(site, drain, row) is expected


def _done(action: str, failure: str | None = None) -> Done:
    return Done(action, "request", failure)


@pytest.mark.parametrize(
    ("history", "states"),
    [
        ([_done("create")], {"ACTIVE", "ERROR"}),
        ([_done("create", "It was cancelled on request.")], {"ERROR"}),
        ([_done("create"), _done("resize")], {"VERIFY_RESIZE"}),
        ([_done("resize"), _done("confirmResize", "no")], {"VERIFY_RESIZE"}),
        ([_done("resize"), _done("revertResize")], {"ACTIVE"}),
        ([_done("shelve"), _done("unshelve", "no")], {"SHELVED", "SHELVED_OFFLOADED"}),
        ([_done("unshelve"), _done("evacuate", "no")], {"ACTIVE", "ERROR"}),
        ([_done("unshelve"), _done("resize", "no")], {"ACTIVE"}),
        ([_done("drain", "why"), _done("migrate"), _done("confirmResize")], {"ACTIVE"}),
        ([_done("shelve"), _done("drain", "why"), _done("migrate")], {"VERIFY_RESIZE", "SHELVED_OFFLOADED"}),
        ([_done("drain", "why"), _done("evacuate"), _done("unshelve")], {"ACTIVE", "SHUTOFF"}),
    ],
    ids=lambda value: "-".join(each.action for each in value) if isinstance(value, list) else None,
)
def test_a_history_explains_a_state(history: list[Done], states: set[str]) -> None:
    assert explained(history) == states


@pytest.mark.parametrize("failure", [IS_DEAD, "It was cancelled on request."])
def test_a_fault_explains_that_a_move_left_a_server_to_its_dead_source(failure: str) -> None:
    history = [_done("unshelve"), _done("resize", failure)]
    assert explained(history) == {"ACTIVE"}
    assert explained(history, fault=IS_DEAD) == {"ACTIVE", "ERROR"}


def test_no_two_deeds_have_one_name_and_values_have_their_own_concern() -> None:
    assert len({deed.name for deed in DEEDS}) == len(DEEDS)
    assert all(deed.concern == deed.name for deed in DEEDS if deed.promise == VALUE)


@pytest.fixture(scope="module")
def account(local_site: LocalSite) -> Iterator[Account]:
    """A user with a server to whose disk something was written."""
    account = Account(1, (), ())
    nobody = Ledger("", on_volume=False, allowed={EXISTS: {False}})
    unseen = Seen(is_building=False, is_busy=False, record=None)
    asking.create(Scene(local_site, account, nobody, unseen, random.Random(1)), "create")
    uuid = str(account.ledger.uuid)
    until(lambda: look.record(local_site, uuid), lambda it: it is not None and it.vm_state == "active")
    asking.write(Scene(local_site, account, account.ledger, unseen, random.Random(1)), "write")
    yield account
    local_site.admin.compute.delete_server(uuid)
    until(lambda: look.record(local_site, uuid), lambda record: record is None)


def _judged(site: LocalSite, account: Account) -> tuple[list[str], list[str]]:
    """(facts, answers), what is before the first colon of each."""
    verdict = judge(site, [account])
    facts, answers = (
        [each.text.split(":")[0] for found in group.values() for each in found]
        for group in (verdict.facts, verdict.answers)
    )
    return facts, answers


def test_nothing_is_wrong_with_a_server_of_which_all_is_true(local_site: LocalSite, account: Account) -> None:
    assert _judged(local_site, account) == ([], [])


def test_what_is_not_as_answered_is_seen(local_site: LocalSite, account: Account) -> None:
    ledger = account.ledger
    before = dict(ledger.allowed), list(ledger.asked), ledger.mark
    ledger.note_value(Asked("metadata", ACCEPTED, "a", "1"))
    ledger.note(Asked("shelve", Answer(202, request_id="req-unknown"), action="shelve"))
    ledger.mark = "data that was never written"
    facts, answers = _judged(local_site, account)
    assert facts == []
    assert [each[:20] for each in sorted(answers)] == [
        "'data that was never",
        "not as answered",
        "shelve was answered ",
    ]
    ledger.allowed, ledger.asked, ledger.mark = before


def test_a_port_that_no_record_names_is_seen_by_the_judge_and_the_audit(
    local_site: LocalSite, account: Account
) -> None:
    port = local_site.admin.network.create_port(
        network_id=local_site.network_id, device_id=account.ledger.uuid, device_owner="compute:nova"
    )
    facts, _answers = _judged(local_site, account)
    assert "ports' addresses in its record" in facts
    assert any("port.unknown" in each for each in look.audit(local_site)[str(account.ledger.uuid)])
    local_site.admin.network.delete_port(port)


def test_an_image_that_nobody_asked_for_is_seen(local_site: LocalSite, account: Account) -> None:
    image = local_site.admin.image.create_image(
        name="picture", instance_uuid=account.ledger.uuid, image_type="snapshot", allow_duplicates=True
    )
    assert _judged(local_site, account) == ([], ["images that nobody asked for"])
    assert any("image.unfinished" in each for each in look.audit(local_site)[str(account.ledger.uuid)])
    local_site.admin.image.delete_image(image)


def test_a_record_in_two_cells_is_seen(local_site: LocalSite, account: Account) -> None:
    uuid = str(account.ledger.uuid)
    (home,) = (cell for cell in ("cell1", "cell2") if instances.find(local_site.cell(cell), uuid))
    other = {"cell1": "cell2", "cell2": "cell1"}[home]
    bundle = copies.read(local_site.cell(home), uuid)
    bundle.instance.hidden = True
    copies.write(local_site.cell(other), bundle)
    assert _judged(local_site, account) == (["records in other cells, and whether they are hidden"], [])
    copies.hard_delete(local_site.cell(other), uuid)
