"""What a server is like before an operation of the matrix is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.faults.answers import Answer
from tests.faults.clouds.site import Site, until
from tests.faults.moves.users import mark
from tests.faults.operations import requests as requests
from tests.faults.operations.subjects import DYING, FLAVOR, Subject, act, create, wait_for


def nothing(site: Site, subject: Subject) -> None:
    """There is no server yet."""


def with_port(site: Site, subject: Subject) -> None:
    subject.port_id = site.member.network.create_port(network_id=site.network_id, name=subject.name).id


def server(
    site: Site, subject: Subject, *, on_volume: bool = False, host: str | None = None, flavor: str = FLAVOR
) -> None:
    answer = create(site, subject, on_volume=on_volume, host=host, flavor=flavor)
    assert answer.is_accepted, answer
    wait_for(site, subject, "ACTIVE")
    assert subject.uuid is not None
    site.guests.mark(subject.uuid, mark(subject.uuid))


def server_on_volume(site: Site, subject: Subject) -> None:
    server(site, subject, on_volume=True)


def anywhere(site: Site, subject: Subject) -> None:
    server(site, subject, flavor="any.small")


def anywhere_on_volume(site: Site, subject: Subject) -> None:
    server(site, subject, on_volume=True, flavor="any.small")


def reached(site: Site, subject: Subject, *, on_volume: bool = False) -> None:
    server(site, subject, on_volume=on_volume, host="cell1-host2", flavor="any.small")


def reached_on_volume(site: Site, subject: Subject) -> None:
    reached(site, subject, on_volume=True)


def on_dying_host(site: Site, subject: Subject, *, on_volume: bool = False) -> None:
    server(site, subject, on_volume=on_volume, host=DYING)


def on_dying_host_and_volume(site: Site, subject: Subject) -> None:
    on_dying_host(site, subject, on_volume=True)


def shelved(site: Site, subject: Subject) -> None:
    server(site, subject)
    assert act(site, subject, "shelve").is_accepted
    wait_for(site, subject, "SHELVED_OFFLOADED")


def shelved_anywhere(site: Site, subject: Subject) -> None:
    """In cell1, from where it may go to the other one."""
    server(site, subject, host="cell1-host2", flavor="any.small")
    assert act(site, subject, "shelve").is_accepted
    wait_for(site, subject, "SHELVED_OFFLOADED")


def shelved_on_host(site: Site, subject: Subject) -> None:
    server(site, subject)
    assert act(site, subject, "shelve").is_accepted
    wait_for(site, subject, "SHELVED")


def with_volume(site: Site, subject: Subject) -> None:
    storage = site.member.block_storage
    subject.volume_id = volume_id = storage.create_volume(size=1, name=subject.name).id
    server(site, subject)
    assert until(lambda: storage.get_volume(volume_id).status, lambda status: status == "available") == "available"


def _ask(site: Site, subject: Subject, ask: Callable[[Site, Subject], Answer]) -> Answer:
    """Beside other work a lease may run out. An attach is rolled back then, and refused: its user asks again."""
    answer: Answer = until(lambda: ask(site, subject), lambda answer: answer.status != 409)
    assert answer.is_accepted, answer
    return answer


def with_attached_volume(site: Site, subject: Subject) -> None:
    with_volume(site, subject)
    _ask(site, subject, requests.attach_volume)


def off_with_attached_volume(site: Site, subject: Subject) -> None:
    with_attached_volume(site, subject)
    assert act(site, subject, "os-stop").is_accepted
    wait_for(site, subject, "SHUTOFF")


def rescued(site: Site, subject: Subject) -> None:
    server(site, subject)
    assert act(site, subject, "rescue").is_accepted
    wait_for(site, subject, "RESCUE")


def with_free_device_port(site: Site, subject: Subject) -> None:
    server(site, subject)
    subject.port_id = site.member.network.create_port(
        network_id=site.network_id, name=subject.name, binding_vnic_type="direct"
    ).id


def with_device_port(site: Site, subject: Subject) -> None:
    with_free_device_port(site, subject)
    _ask(site, subject, requests.plug_device)


def with_second_port(site: Site, subject: Subject) -> None:
    server(site, subject)
    answer = _ask(site, subject, requests.plug)
    subject.port_id = json.loads(answer.text)["interfaceAttachment"]["port_id"]


def with_backup(site: Site, subject: Subject) -> None:
    server(site, subject)
    answer = requests.back_up(site, subject, 1)
    assert answer.is_accepted, answer
    wait_for(site, subject, "ACTIVE")
