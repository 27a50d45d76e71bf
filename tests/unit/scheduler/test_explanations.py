"""The sentence that says why no host fitted."""

from __future__ import annotations

import msgspec

from causeway.scheduler.explain import Explanation, HostVerdict, Refusal


def verdict(host: str, refusal: Refusal | None) -> HostVerdict:
    return HostVerdict(host, host, f"node-{host}", "uuid-cell1", "cell1", refusal)


def no_gen2() -> Refusal:
    return Refusal("lacks the aggregate property gen=2", "lack the aggregate property gen=2", {"has": "1"})


def full(free: int) -> Refusal:
    return Refusal("is full on MEMORY_MB", "are full on MEMORY_MB", needs=4096, free=free)


def test_a_sentence_for_users_names_no_host() -> None:
    hosts = [verdict(f"old{n}", no_gen2()) for n in range(4)]
    hosts += [verdict("full1", full(2048)), verdict("full2", full(2048))]
    hosts += [verdict("down", Refusal("is down", "are down"))]
    explanation = Explanation(hosts)
    assert explanation.summary() == (
        "7 hosts: 4 lack the aggregate property gen=2, 2 are full on MEMORY_MB (needs 4096, 2048 free), 1 is down"
    )
    assert explanation.summary(with_hosts=True).endswith("1 is down (down)")


def test_amounts_that_differ_show_the_largest() -> None:
    explanation = Explanation([verdict("a", full(10)), verdict("b", full(20))])
    assert explanation.summary() == "2 hosts: 2 are full on MEMORY_MB (needs 4096, at most 20 free)"


def test_one_host_and_none_have_sentences_of_their_own() -> None:
    assert Explanation([verdict("a", no_gen2())]).summary() == "1 host: 1 lacks the aggregate property gen=2"
    assert Explanation().summary() == "there are no hosts"
    assert Explanation([verdict("a", None)]).summary() == "1 host: 1 fits"


def test_administrators_see_what_was_compared() -> None:
    assert no_gen2().reason == "lacks the aggregate property gen=2 [has: 1]"
    assert full(5).reason == "is full on MEMORY_MB (needs 4096, 5 free)"


def fits(host: str, total: float, *, selected: bool = False) -> HostVerdict:
    found = verdict(host, None)
    found.weights, found.total, found.selected = {"RAMWeigher": total}, total, selected
    return found


def test_what_is_kept_with_a_move_does_not_grow_with_the_cloud() -> None:
    hosts = [fits(f"fits{n}", 1 - n / 1000, selected=n == 31) for n in range(1000)]
    refused = [verdict(f"old{n}", no_gen2()) for n in range(500)] + [
        verdict("full1", full(10)),
        verdict("full2", full(20)),
    ]
    whole = Explanation([*hosts, *refused], note="noted", silent_cells=["cell9"])
    short = whole.in_short()
    assert [one.host for one in short.hosts] == [*(f"fits{n}" for n in range(10)), "fits31"]
    assert [(one.many, one.hosts) for one in short.others_refused] == [
        ("lack the aggregate property gen=2", 500),
        ("are full on MEMORY_MB", 2),
    ]
    assert (
        short.summary()
        == whole.summary()
        == (
            "noted; 1502 hosts: 500 lack the aggregate property gen=2,"
            " 2 are full on MEMORY_MB (needs 4096, at most 20 free), 1000 fit; 1 cell does not answer"
        )
    )
    # Who shortens it once more (a conductor, what a scheduler shortened) changes nothing.
    assert short.in_short() == short
    assert len(msgspec.json.encode(short)) < 5000


def test_a_host_whose_claim_was_refused_is_reported() -> None:
    lost = fits("lost", 2.0)
    lost.refusal = Refusal("was full when it was claimed", "were full when they were claimed", filter="Placement")
    short = Explanation([fits("taken", 1.0, selected=True), lost]).in_short()
    assert [one.host for one in short.hosts] == ["taken", "lost"]


def test_an_explanation_of_an_older_release_is_read() -> None:
    kept = {"hosts": [msgspec.to_builtins(fits("a", 1.0, selected=True))], "note": "", "silent_cells": []}
    assert msgspec.convert(kept, Explanation).summary() == "1 host: 1 fits"


def test_a_fault_names_some_of_many_hosts() -> None:
    said = Explanation([verdict(f"old{n}", no_gen2()) for n in range(500)]).summary(with_hosts=True)
    assert said.startswith("500 hosts: 500 lack the aggregate property gen=2 (old0, old1, ")
    assert said.endswith("old19 and 480 more)")
