"""Servers whose TPM's state is encrypted: the key is made and deleted with the server, and goes where its guest goes."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from openstack import exceptions

from causeway.devcloud.key_manager import secrets
from causeway.devcloud.tables.key import Secret
from causeway.model import tpm_secrets
from tests.functional.live.live_cloud import ONE_NETWORK, LiveCloud
from tests.functional.servers.moves_cloud import until

CLOUD = {"overrides": {"simulated": ONE_NETWORK}}
KINDS = ("user", "deployment")


@pytest.fixture(scope="module")
def images(module_cloud: LiveCloud) -> Iterator[dict[str, str]]:
    """Images for guests with a TPM; whose the key shall be (or nobody's) -> its id."""
    cloud = module_cloud
    content = cloud.member.image.download_image(cloud.image_id).content
    form = cloud.member.image.get_image(cloud.image_id).disk_format
    made = {}
    for kind in (*KINDS, ""):
        more = {"hw_tpm_secret_security": kind} if kind else {}
        made[kind] = cloud.member.image.create_image(
            name=f"tpm {kind}",
            disk_format=form,
            container_format="bare",
            data=content,
            wait=True,
            hw_tpm_version="2.0",
            hw_tpm_model="tpm-crb",
            **more,
        ).id
    yield made


@pytest.fixture
def only_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    """No policy of the key manager lets the conductors' own account have keys of others."""
    monkeypatch.setattr(secrets, "is_key_reader", lambda _caller: False)


def keys(cloud: LiveCloud) -> dict[str, tuple[str, str]]:
    """id of each key of a TPM -> its project, and the passphrase that it gives."""
    devcloud = cloud.embedded.devcloud
    projects = {row.id: row.name for row in cloud.connection("admin", "admin").identity.projects()}
    with devcloud.store.transaction() as session:
        rows = [row for row in session.query(Secret) if "of the TPM of" in (row.name or "")]
        return {row.id: (projects[row.project_id], base64.b64decode(row.payload).hex()) for row in rows}


def tpm_keys(cloud: LiveCloud, server: Any) -> dict[str, str]:
    """host -> the passphrase that it has of the server."""
    found = {host: cloud.driver(host).tpm_keys.get(server.id) for host in cloud.parts.computes}
    return {host: text for host, text in found.items() if text is not None}


@pytest.mark.usefixtures("only_owners")
@pytest.mark.parametrize(("kind", "owner"), [("user", "demo"), ("deployment", "service")])
def test_a_key_is_made_with_a_server_for_its_owner_and_deleted_with_it(
    cloud: LiveCloud, images: dict[str, str], kind: str, owner: str
) -> None:
    server = cloud.boot(image_id=images[kind])
    ((key_id, (project, passphrase)),) = keys(cloud).items()
    assert project == owner
    record = cloud.record(server, "cell1")
    assert (tpm_secrets.key_of(record.system_metadata), tpm_secrets.security_of(record.system_metadata)) == (
        key_id,
        kind,
    )
    assert tpm_keys(cloud, server) == {server.compute_host: passphrase}
    cloud.member.compute.delete_server(server)
    until(lambda: keys(cloud), lambda found: found == {}, "the key to be deleted")
    assert tpm_keys(cloud, server) == {}


def test_a_tpm_for_which_nobody_asked_for_a_key_is_as_before(cloud: LiveCloud, images: dict[str, str]) -> None:
    server = cloud.boot(image_id=images[""])
    assert (keys(cloud), tpm_keys(cloud, server)) == ({}, {})
    cloud.resized(server)
    cloud.confirmed(server)
    assert (keys(cloud), tpm_keys(cloud, server)) == ({}, {})


@pytest.mark.usefixtures("only_owners")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_the_key_goes_to_the_other_cell_with_a_resize(
    cloud: LiveCloud, images: dict[str, str], kind: str, end: str
) -> None:
    server = cloud.boot(image_id=images[kind])
    ((_, (_, passphrase)),) = keys(cloud).items()
    moved = cloud.resized(server)
    assert moved.compute_host != server.compute_host
    assert tpm_keys(cloud, server) == {moved.compute_host: passphrase}
    after = cloud.confirmed(server) if end == "confirm" else cloud.reverted(server)
    assert tpm_keys(cloud, server) == {after.compute_host: passphrase}
    cloud.driver(after.compute_host).tpm_keys.clear()
    cloud.member.compute.stop_server(server)
    cloud.wait(server, "SHUTOFF")
    cloud.member.compute.start_server(server)
    cloud.wait(server, "ACTIVE")
    assert tpm_keys(cloud, server) == {after.compute_host: passphrase}


@pytest.mark.usefixtures("only_owners")
@pytest.mark.parametrize("kind", KINDS)
def test_only_a_key_of_ours_goes_live_for_an_administrator_of_another_project(
    cloud: LiveCloud, images: dict[str, str], kind: str
) -> None:
    server = cloud.boot(flavor="any.medium", image_id=images[kind])
    source = cloud.host_of(server)
    there = "cell2-host1" if source.startswith("cell1") else "cell1-host1"
    after = cloud.migrated(server, host=there, user=cloud.connection("admin", "admin"))
    assert (after.status, after.compute_host) == ("ACTIVE", there if kind == "deployment" else source)
    assert list(tpm_keys(cloud, server)) == [after.compute_host]


def test_a_key_of_the_user_goes_live_where_the_key_manager_lets_our_account_read_it(
    cloud: LiveCloud, images: dict[str, str]
) -> None:
    server = cloud.boot(flavor="any.medium", image_id=images["user"])
    source = cloud.host_of(server)
    there = "cell2-host1" if source.startswith("cell1") else "cell1-host1"
    after = cloud.migrated(server, host=there, user=cloud.connection("admin", "admin"))
    assert after.compute_host == there
    assert list(tpm_keys(cloud, server)) == [there]


@pytest.mark.parametrize("kind", ["", "deployment"])
def test_a_resize_does_not_change_whose_key_it_is(cloud: LiveCloud, images: dict[str, str], kind: str) -> None:
    flavor = cloud.flavor("any.user")
    specs = {"hw:tpm_version": "2.0", "hw:tpm_secret_security": "user"}
    cloud.admin.compute.create_flavor_extra_specs(cloud.admin.compute.find_flavor(flavor), specs)
    server = cloud.boot(image_id=images[kind] if kind else cloud.image_id)
    with pytest.raises(exceptions.BadRequestException, match=r"TPM secret security|Conflicting values"):
        cloud.member.compute.resize_server(server, flavor)


def test_a_build_that_fails_leaves_no_key(cloud: LiveCloud, images: dict[str, str]) -> None:
    cloud.fail("status", "/ports", service="network", method="PUT", status=409)
    server = cloud.member.compute.create_server(
        name="fails", flavor_id="gen1.small", image_id=images["user"], networks=[{"uuid": cloud.network_id}]
    )
    until(lambda: cloud.json_of(server)["status"], lambda status: status == "ERROR", "the build to fail")
    until(lambda: keys(cloud), lambda found: found == {}, "the key to be deleted")
