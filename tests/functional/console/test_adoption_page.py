"""The page of a cloud that is taken over from Nova: how far its hosts are, what blocks, and who does not see it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from causeway.model.adoption import AdoptedHost, Finding, HostState
from causeway.openstack_plugin.asking import NotAsked
from causeway.operators_page.pages import MOST_FINDINGS
from causeway.store.api import adopted_hosts, adoptions
from tests.functional.console.adopted_cloud import FOLDER, HOST, PORT, imported
from tests.functional.console.conftest import Served


def link_of(console: Served) -> str:
    return f'href="{console.url.removeprefix(console.origin)}/adoption"'


def test_how_far_hosts_are_and_what_blocks_is_shown(console: Served, cloud: Any) -> None:
    server = cloud.admin.compute.get_server(cloud.boot().id)
    with imported(cloud, [FOLDER, PORT]):
        page = console.page("/adoption")
        assert "1 of 3 hosts taken" in page
        assert f"{int(server.compute_host != HOST)} of 1 server on them" in page
        assert "1 imported, 1 looked, 1 taken; <strong>1 host blocked</strong>" in page
        assert "Imported from Nova: key pair: 1." in page
        assert "looked, <strong>blocked</strong>" in page
        assert page.index("blocks port.unknown") < page.index("differs folder.unused")
        assert "Detach &lt;b&gt;it&lt;/b&gt;." in page
        # cell2's own hosts were not Nova's.
        assert "not imported" in page


def test_names_of_hosts_and_findings_are_text_on_the_page(console: Served, cloud: Any) -> None:
    with imported(cloud, [PORT]):
        page = console.page("/adoption")
        assert page.count("&lt;img src=x onerror=alert(1)&gt;?x") == 2, "a host's name and a finding"
        assert "<img" not in page and "<b>" not in page and "\u202e" not in page


def test_a_host_with_many_findings_shows_the_first_of_those_that_block(console: Served, cloud: Any) -> None:
    many = [FOLDER] + [Finding("guest.missing", str(number), "It is gone.") for number in range(MOST_FINDINGS + 4)]
    with imported(cloud, many):
        page = console.page("/adoption")
        assert page.count("blocks guest.missing") == MOST_FINDINGS
        assert "differs" not in page
        assert "<li>5 more: " in page


def test_the_page_is_in_the_navigation_once_something_was_imported(console: Served, cloud: Any) -> None:
    assert link_of(console) not in console.page("/")
    assert "Nothing was imported from Nova" in console.page("/adoption")
    with imported(cloud, []):
        assert link_of(console) in console.page("/")
        assert link_of(console) in console.page("/audit")
        assert 'aria-current="page">Taking over' in console.page("/adoption")
    assert link_of(console) not in console.page("/")


def test_pages_are_shown_as_ever_if_the_cloud_does_not_say_what_was_imported(
    console: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(_cloud: Any) -> bool:
        raise NotAsked("it does not answer")

    monkeypatch.setattr("causeway.operators_page.cloud.Cloud.is_imported", silent)
    page = console.page("/drains")
    assert link_of(console) not in page and "/operations" in page


def test_that_all_hosts_are_taken_and_that_it_is_finished_is_said(console: Served, cloud: Any) -> None:
    api = cloud.parts.api_database
    with imported(cloud, []):
        for adopted in adopted_hosts.all_hosts(api):
            adopted.state = HostState.TAKEN
            adopted_hosts.save(api, adopted)
        page = console.page("/adoption")
        assert "3 of 3 hosts taken" in page and "<code>causeway adopt finish</code> is next" in page
        adoptions.note_finished(api)
        assert "Finished: the cloud is Causeway's" in console.page("/adoption")


def test_hosts_that_are_taken_are_seen_as_they_come(console: Served, cloud: Any) -> None:
    with (
        imported(cloud, []),
        console.browser.get(f"{console.url}/events/adoption", stream=True, timeout=60) as answer,
    ):
        lines = (line for line in answer.iter_lines(decode_unicode=True) if line.startswith("data: "))
        assert "1 of 3 hosts taken" in json.loads(next(lines).removeprefix("data: "))
        (cell1, _cell2) = cloud.parts.cells.mappings(cell0=False)
        adopted_hosts.save(cloud.parts.api_database, AdoptedHost(HOST, cell1.uuid, HostState.TAKEN))
        assert "2 of 3 hosts taken" in json.loads(next(lines).removeprefix("data: "))
