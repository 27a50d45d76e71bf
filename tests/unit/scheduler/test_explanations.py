"""The sentence that says why no host fitted."""

from __future__ import annotations

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


def test_amounts_that_differ() -> None:
    explanation = Explanation([verdict("a", full(10)), verdict("b", full(20))])
    assert explanation.summary() == "2 hosts: 2 are full on MEMORY_MB (needs 4096, at most 20 free)"


def test_one_host_and_none() -> None:
    assert Explanation([verdict("a", no_gen2())]).summary() == "1 host: 1 lacks the aggregate property gen=2"
    assert Explanation().summary() == "there are no hosts"
    assert Explanation([verdict("a", None)]).summary() == "1 host: 1 fits"


def test_administrators_see_what_was_compared() -> None:
    assert no_gen2().reason == "lacks the aggregate property gen=2 [has: 1]"
    assert full(5).reason == "is full on MEMORY_MB (needs 4096, 5 free)"
