"""Where a host says that a console listens: proxies connect to it."""

from __future__ import annotations

import pytest
from oslo_config import cfg

from causeway import errors
from causeway.conductor.endpoints.inside import check_console
from causeway.conf import new_config
from causeway.model.console import ConsoleAddress

NETWORKS = ["10.1.0.0/16", "fd00:1::/32"]


def check(host: str, networks: list[str]) -> None:
    conf = new_config(console={"host_networks": networks})
    check_console("host1", ConsoleAddress(host, 5900, "https://consoles.example/"), conf.console.host_networks)


@pytest.mark.parametrize("address", ["10.1.2.3", "fd00:1::7"])
def test_addresses_in_listed_networks_are_believed(address: str) -> None:
    check(address, NETWORKS)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "::1",
        "169.254.169.254",
        "10.2.0.1",
        "::ffff:10.1.2.3",
        "rabbit.example",
        "",
        "10.1.2.3 ",
        "x" * 70_000,
    ],
)
def test_other_addresses_of_consoles_are_refused(address: str) -> None:
    with pytest.raises(errors.AnswerRefused) as refusal:
        check(address, NETWORKS)
    assert "[console] host_networks (10.1.0.0/16, fd00:1::/32)" in str(refusal.value.details)
    assert len(str(refusal.value.details)) < 1000


def test_without_a_list_any_address_is_believed() -> None:
    check("192.0.2.7", [])


def test_what_is_no_network_is_no_option() -> None:
    with pytest.raises((cfg.ConfigFileValueError, ValueError)):
        check("10.1.2.3", ["10.1.2.3/16"])
