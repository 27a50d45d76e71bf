"""The password of a guest: it posts it once, its user reads and clears it through the Compute API."""

from __future__ import annotations

import pytest

from causeway.model.guest_password import password_in, with_password
from causeway.store.cell import instances
from tests.functional.conftest import Caller, Cloud
from tests.functional.metadata.conftest import Guests, signed

PASSWORD = "/openstack/latest/password"
# As base64 of what a key of 4096 bits makes.
LONG = b"A" * 684


def test_a_guest_posts_its_password_once_and_its_user_clears_it(cloud: Cloud, guests: Guests, api: Caller) -> None:
    cloud.option("api", "metadata_cache_expiration", 600)
    server = cloud.server(system_metadata={"boot_roles": "member"})
    url = f"/servers/{server.uuid}/os-server-password"
    assert guests.get(server, PASSWORD).text == ""
    assert api.get(url).json == {"password": ""}

    assert guests.post(server, PASSWORD, LONG).status_code == 200
    assert guests.get(server, PASSWORD).content == LONG
    assert api.get(url).json == {"password": LONG.decode()}
    kept = instances.get(cloud.cell("cell1"), server.uuid).system_metadata
    assert kept == {"boot_roles": "member"} | {
        name: "A" * length for name, length in (("password_0", 255), ("password_1", 255), ("password_2", 174))
    }
    # Also at once: what is remembered of the server does not count.
    assert guests.post(server, PASSWORD, b"another").status_code == 409
    assert guests.get(server, PASSWORD).content == LONG

    assert api.by("other:elsewhere").delete(url).status == 404
    assert api.delete(url).status == 204
    assert api.get(url).json == {"password": ""}
    assert guests.get(server, PASSWORD).text == ""
    assert instances.get(cloud.cell("cell1"), server.uuid).system_metadata == {"boot_roles": "member"}
    assert api.delete(url).status == 204
    assert guests.post(server, PASSWORD, b"another").status_code == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"A" * 1020, 200), (b"A" * 1021, 400), (b"A" * 100_000, 400), (b"\xff", 400), ("é".encode(), 400)],
    ids=["1020 bytes", "1021 bytes", "many", "no text", "not as it is encrypted"],
)
def test_what_can_be_posted(cloud: Cloud, guests: Guests, body: bytes, status: int) -> None:
    server = cloud.server()
    assert guests.post(server, PASSWORD, body).status_code == status
    assert guests.get(server, PASSWORD).content == (body if status == 200 else b"")


def test_who_may_not_post(cloud: Cloud, guests: Guests) -> None:
    server = cloud.server()
    wrong = signed(server, **{"X-Instance-ID-Signature": "0" * 64})
    assert guests.ask("POST", PASSWORD, headers=wrong, body=b"A").status_code == 403
    assert guests.post(server, "/openstack/2012-08-10/password", b"A").status_code == 404
    assert guests.get(server, "/openstack/2012-08-10/password").status_code == 404
    assert guests.post(server, "/openstack/none/password", b"A").status_code == 404
    for method in ("PUT", "DELETE", "PATCH"):
        assert guests.ask(method, PASSWORD, headers=signed(server), body=b"A").status_code == 400
    assert instances.get(cloud.cell("cell1"), server.uuid).system_metadata == {}


def test_records_that_a_move_has_closed_are_waited_for(
    cloud: Cloud, guests: Guests, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The move that closed them has died: the guest is asked to try again, and nothing is written behind the move's back."""
    monkeypatch.setattr("causeway.store.servers.PATIENCE", 0.0)
    monkeypatch.setattr("causeway.store.servers._has_ended", lambda *_: False)
    server = cloud.server()
    with cloud.cell("cell1").write() as connection:
        instances.close_in(connection, server.uuid, "a move")
    assert guests.post(server, PASSWORD, b"A").status_code == 409
    instances.reopen(cloud.cell("cell1"), server.uuid, "a move")
    assert guests.post(server, PASSWORD, b"A").status_code == 200


def test_a_shorter_password_replaces_all_of_a_longer_one() -> None:
    long = with_password({"other": "kept"}, "A" * 600)
    assert password_in(long) == "A" * 600
    assert with_password(long, "B") == {"other": "kept", "password_0": "B"}
