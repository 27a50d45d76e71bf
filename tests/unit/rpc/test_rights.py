"""The rights of a host's account in RabbitMQ are its own: names that only look alike are not among them."""

from __future__ import annotations

import re

import pytest

from causeway.rpc.rights import of_compute


@pytest.mark.parametrize("host", ["host1", "gen1-host1.example.org", "10.0.0.1"])
def test_a_host_has_its_own_queues(host: str) -> None:
    found = of_compute(host, "openstack")
    for name in ("adopting", f"adopting.{host}", f"adopting_fanout_{host}:compute:3"):
        assert all(re.search(each, name) for each in (found.configure, found.write, found.read)), name
    assert re.search(found.topic_read, f"adopting.{host}")
    for name in ("compute", f"compute.{host}", f"reply_{host}:compute:1", f"compute_fanout_{host}:compute:12"):
        assert all(re.search(each, name) for each in (found.configure, found.write, found.read)), name
    assert re.search(found.topic_read, f"compute.{host}")
    assert re.search(found.topic_write, "cell_conductor")
    assert re.search(found.write, "amq.default")
    assert not re.search(found.configure, "amq.default") and not re.search(found.read, "amq.default")


@pytest.mark.parametrize("other", ["host10", "host", "xhost1", "host1.example", "host1x", "hostX1", "host1:compute:1"])
def test_a_host_has_nothing_of_others(other: str) -> None:
    found = of_compute("host1", "openstack")
    names = [
        f"compute.{other}",
        f"adopting.{other}",
        f"reply_{other}:compute:1",
        f"compute_fanout_{other}:compute:1",
        "cell_conductor",
    ]
    for name in (*names, "reply_host1:compute:", "reply_host1:conductor:1", "reply_0123", "amq.topic", ""):
        assert not any(re.fullmatch(each, name) for each in (found.configure, found.write, found.read)), name
    assert not re.fullmatch(found.topic_read, f"compute.{other}") and not re.fullmatch(found.topic_read, "#")
    assert not re.fullmatch(found.topic_write, "compute") and not re.fullmatch(found.topic_write, "compute.host1")


def test_a_dot_is_a_dot() -> None:
    assert not re.search(of_compute("a.b", "openstack").read, "compute.aXb")
