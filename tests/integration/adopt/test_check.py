"""What `causeway adopt check` says of a healthy Nova with real guests and real services, and of one where a resize waits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.integration.adopt import outside
from tests.integration.adopt.adopted_cloud import AdoptedCloud, new_cloud
from tests.integration.adopt.answers import await_status
from tests.integration.adopt.commands import causeway
from tests.integration.adopt.nova_cloud import NovaCloud
from tests.integration.adopt.population import Population
from tests.integration.real_services.configuration import PASSWORD

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def words(cloud: NovaCloud, population: Population, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:  # noqa: ARG001
    """All that can be given to a check. Of Causeway there are databases and the files of hosts, and nothing runs."""
    nova, folder = cloud.nova, tmp_path_factory.mktemp("looks")
    with new_cloud(cloud, "check") as adopted:
        adopted.make_databases()
        adopted.configure_hosts()
        given = [
            f"--nova-config={nova.config_of('nova')}",
            f"--policy={nova.config_of('nova').with_name('policy.yaml')}",
        ]
        given += [f"--compute-config={host}={nova.config_of(f'compute-{host}')}" for host in nova.hosts]
        given += [f"--config-file={file}" for file in adopted.files_of("api")]
        yield [*given, *(f"--look={look_at(adopted, host, folder)}" for host in nova.hosts)]


def look_at(adopted: AdoptedCloud, host: str, folder: Path) -> Path:
    """The file with what a host says of itself."""
    files = [f"--config-file={file}" for file in adopted.files_of(host)]
    said = causeway("adopt", "look", "--json", *files, prefix=adopted.prefix(host))
    assert said.returncode == 0, said.stderr
    file = folder / f"{host}.json"
    file.write_text(said.stdout)
    return file


def checked(words: list[str]) -> dict[str, Any]:
    said = causeway("adopt", "check", "--format=json", *words)
    assert PASSWORD not in said.stdout
    report: dict[str, Any] = json.loads(said.stdout)
    assert said.returncode == int(report["blocked"]), said.stderr
    return report


def test_a_healthy_cloud_is_checked_whole_and_nothing_blocks(
    cloud: NovaCloud, population: Population, words: list[str]
) -> None:
    report = checked(words)
    assert report["not_checked"] == []
    as_it_is = {(each["kind"], each["id"]) for each in report["as_it_is"]}
    found = [each for each in report["findings"] if each["kind"] != "option"]
    # A server that was in the other cell and is Nova's again has a guest with another name, where its own was taken.
    renamed = {each["id"] for each in found if each["code"] == "look.guest.name"}
    assert {id_ for kind, id_ in as_it_is if kind == "server"} == {*population.servers.values()} - renamed
    assert {id_ for kind, id_ in as_it_is if kind == "host"} == {*cloud.nova.hosts}
    # New guests get other names than Nova gave.
    assert {each["code"] for each in found if each["id"] not in renamed} == {"guest_names"}
    assert {each["verdict"] for each in report["findings"]} == {"differs"}
    assert [each for each in report["findings"] if not each["what"]] == []


def test_the_page_to_be_sent_around_names_hosts_and_no_password(
    cloud: NovaCloud, population: Population, words: list[str], tmp_path: Path
) -> None:
    page = tmp_path / "check.html"
    said = causeway("adopt", "check", "--format=html", f"--output={page}", *words)
    assert said.returncode == 0, said.stderr
    servers, hosts = len(population.servers), len(cloud.nova.hosts)
    assert f"{servers} servers: " in said.stdout and f"{hosts} hosts: {hosts} as it is." in said.stdout
    text = page.read_text()
    assert all(host in text for host in cloud.nova.hosts)
    assert PASSWORD not in text


def test_a_resize_that_waits_and_a_guest_that_is_elsewhere_block_by_name(
    cloud: NovaCloud, population: Population, words: list[str]
) -> None:
    """The looks are older than the resize: its guest was seen on the host that it has left."""
    uuid = population.servers["stopped"]
    host = outside.guest_of(cloud, uuid).host
    with closing(cloud.nova.connection()) as theirs:
        theirs.compute.resize_server(uuid, "gen1.large")
        await_status(theirs, uuid, "VERIFY_RESIZE")
        try:
            report = checked(words)
        finally:
            theirs.compute.revert_server_resize(uuid)
            await_status(theirs, uuid, "SHUTOFF")
    blocking = {(each["id"], each["name"], each["code"]) for each in report["findings"] if each["verdict"] == "blocks"}
    assert blocking == {
        (uuid, "stopped", "verify_resize"),
        (uuid, "stopped", "look.guest.missing"),
        (host, "", "look.guest.unknown"),
    }
