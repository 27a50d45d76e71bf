"""`causeway adopt check`: its forms believe no name of a tenant's, and its exit status says whether something blocks."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from oslo_policy import opts as policy_opts

from causeway.adopt.check import Report
from causeway.cli.adopt import check_reports
from causeway.cli.main import cli
from causeway.conf import new_config
from causeway.model.host import CellMapping
from causeway.store import schema
from causeway.store.api import cells
from causeway.store.database import API, Database
from tests.unit.adopt import nova_confs
from tests.unit.adopt.check.clean_cloud import ACTIVE, COMPUTE_CONF, CleanCloud, codes, instance
from tests.unit.adopt.check.services_around import Around, served

HOSTILE = "<script>alert(1)</script> | `x` [a](http://b) \x1b[2J\u202e &amp;"
FORMS = ("text", "markdown", "html", "json")


def run(cloud: CleanCloud, *more: str) -> Result:
    words = ["adopt", "check", "--nova-config", str(cloud.nova.conf), "--compute-config", f"*={cloud.compute_conf}"]
    return CliRunner().invoke(cli, [*words, *more])


def hostile(content: dict[str, dict[str, list[dict[str, Any]]]]) -> None:
    instance(content).update(display_name=HOSTILE, task_state="<b>rebooting</b>")


@pytest.fixture
def report(tmp_path: Path) -> Report:
    return CleanCloud(tmp_path, hostile).check()


class Shown(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, _attrs: object) -> None:
        self.elements.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_shows_hostile_names_as_text(report: Report) -> None:
    page = check_reports.as_text(report, "html")
    shown = Shown(page)
    assert {"script", "b", "a", "img", "link"}.isdisjoint(shown.elements)
    assert "<script>alert(1)</script> | `x`" in shown.text
    assert "Its task is <b>rebooting</b>." in shown.text
    assert "http" not in page.replace("[a](http://b)", "").replace("http-equiv", "")


def test_markdown_shows_hostile_names_as_text(report: Report) -> None:
    text = check_reports.as_text(report, "markdown")
    line = next(line for line in text.splitlines() if "alert" in line)
    assert "<script>" not in text
    assert line.startswith("| &lt;script&gt;alert\\(1\\)&lt;/script&gt; \\| \\`x\\` \\[a\\]\\(")
    assert line.replace("\\|", "").count("|") == 3


@pytest.mark.parametrize("form", ["text", "html", "markdown"])
def test_no_control_character_of_a_name_is_shown(report: Report, form: str) -> None:
    text = check_reports.as_text(report, form)
    assert "alert" in text
    assert {"\x1b", "\u202e"}.isdisjoint(text)


def test_json_has_every_finding_and_every_other_subject_once(report: Report) -> None:
    shown = json.loads(check_reports.as_text(report, "json"))
    assert len(shown["findings"]) == len(report.findings)
    subjects = {(each["kind"], each["id"]) for each in [*shown["findings"], *shown["as_it_is"]]}
    assert len(subjects) == len(report.judged)
    assert {"kind": "server", "id": ACTIVE, "name": HOSTILE, "verdict": "blocks", "code": "task"}.items() <= next(
        each for each in shown["findings"] if each["id"] == ACTIVE
    ).items()
    assert shown["blocked"] is True
    assert shown["counts"]["server"] == {"as it is": 13, "differs": 2, "blocks": 1}


def test_many_findings_of_one_code_are_counted_not_listed(tmp_path: Path) -> None:
    def all_busy(content: dict[str, dict[str, list[dict[str, Any]]]]) -> None:
        for name in ("cell1", "cell2"):
            for row in content[name]["instances"]:
                row["task_state"] = "rebooting"

    text = check_reports.as_text(CleanCloud(tmp_path, all_busy).check(), "text")
    assert "Blocks: task (15)" in text
    assert text.count("Its task is rebooting.") == 10
    assert "and 5 more" in text


def test_the_text_counts_first_then_names_what_blocks_then_what_differs(report: Report) -> None:
    lines = check_reports.as_text(report, "text").splitlines()
    assert lines[0].startswith("16 servers: 13 as it is, 2 with a difference, 1 blocked. 4 hosts: 4 as it is.")
    heads = [line.partition(":")[0] for line in lines if line.startswith(("Blocks:", "Differs:", "Not checked:"))]
    assert heads == sorted(heads)


@pytest.mark.parametrize("form", FORMS)
def test_exit_status_is_one_where_something_blocks(tmp_path: Path, form: str) -> None:
    said = run(CleanCloud(tmp_path, lambda content: instance(content).update(task_state="rebooting")), "--format", form)
    assert said.exit_code == 1
    assert "rebooting" in said.output


def test_exit_status_is_zero_where_nothing_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud = CleanCloud(tmp_path)
    monkeypatch.setattr("causeway.adopt.check.hosts.why_down", lambda *_: None)
    said = run(cloud)
    assert said.exit_code == 0, said.output
    assert "Blocks" not in said.output


def test_services_that_reported_long_ago_are_down_by_the_clock(tmp_path: Path) -> None:
    said = run(CleanCloud(tmp_path))
    assert said.exit_code == 1
    assert "Blocks: host_down (4)" in said.output


def test_exit_status_is_two_where_databases_can_not_be_read(tmp_path: Path) -> None:
    cloud = CleanCloud(tmp_path)
    cloud.nova.execute("cell1", "UPDATE alembic_version SET version_num = 'ffffffffffff'")
    said = run(cloud)
    assert said.exit_code == 2
    assert "has a schema of revision ffffffffffff" in said.output


@pytest.mark.parametrize("url", ["", "not a url", "mysql+pymysql://nova:secret-word@127.0.0.1:1/nova_api"])
def test_exit_status_is_two_and_no_password_is_shown_without_a_database(tmp_path: Path, url: str) -> None:
    cloud = CleanCloud(tmp_path)
    cloud.nova.conf.write_text(f"[api_database]\nconnection = {url}\n")
    said = run(cloud)
    assert said.exit_code == 2, said.output
    assert "secret-word" not in said.output


@pytest.mark.parametrize("given", ["host1", "=nova.conf", "host1=", "host1=/no/such/file"])
def test_a_compute_config_without_host_or_file_is_refused(tmp_path: Path, given: str) -> None:
    said = run(CleanCloud(tmp_path), "--compute-config", given)
    assert said.exit_code == 2
    assert "HOST=FILE" in said.output


@pytest.mark.parametrize("form", ["text", "html", "markdown", "json"])
def test_the_report_goes_into_a_file_and_the_terminal_has_the_counts(tmp_path: Path, form: str) -> None:
    output = tmp_path / "report"
    said = run(CleanCloud(tmp_path, hostile), "--format", form, "--output", str(output))
    assert said.exit_code == 1
    assert said.output.startswith("16 servers: ")
    assert said.output.count("\n") == 1
    assert "rebooting" in output.read_text()


@pytest.mark.parametrize("form", FORMS)
def test_no_form_shows_a_value_of_an_option(tmp_path: Path, form: str) -> None:
    cloud = CleanCloud(tmp_path)
    cloud.compute_conf.write_text(nova_confs.COMPUTE)
    with served(Around({})) as around:
        cloud.nova.conf.write_text(cloud.nova.conf.read_text() + around.conf())
        around.broken = {"placement": 401, "network": 401, "volume": 401}
        said = run(cloud, "--format", form)
    assert "transport_url" in said.output.replace("\\_", "_")
    assert nova_confs.SECRET not in said.output
    assert "secret-token" not in said.output


def test_options_of_each_role_are_judged_once_for_all_hosts_with_the_same_file(tmp_path: Path) -> None:
    cloud = CleanCloud(tmp_path)
    cloud.compute_conf.write_text(COMPUTE_CONF + "[libvirt]\nvolume_use_multipath = true\n")
    report = cloud.check()
    assert codes(report, "[libvirt] volume_use_multipath of all other hosts") == {"option_without_effect"}
    assert codes(report, "[DEFAULT] instances_path of all other hosts") == {"option_to_add"}
    assert codes(report, "[api_database] connection of the API") == {"option_differs"}
    assert codes(report, "[libvirt] virt_type of all other hosts") == set()


def test_an_option_with_which_no_role_starts_blocks(tmp_path: Path) -> None:
    cloud = CleanCloud(tmp_path)
    cloud.compute_conf.write_text("[DEFAULT]\ncompute_driver = vmwareapi.VMwareVCDriver\n")
    report = cloud.check()
    assert codes(report, "[DEFAULT] compute_driver of all other hosts") == {"option_refused"}
    assert report.is_blocked


def test_hosts_with_files_of_their_own_are_named(tmp_path: Path) -> None:
    cloud = CleanCloud(tmp_path)
    own = tmp_path / "own.conf"
    own.write_text("[libvirt]\nimages_type = lvm\n")
    said = run(cloud, "--compute-config", f"cell1-host1={own}", "--format", "json")
    found = json.loads(said.output)["findings"]
    assert {each["id"] for each in found if each["code"] == "option_refused"} == {
        "[libvirt] images_type of cell1-host1"
    }
    assert {each["what"] for each in found if each["code"] == "image_type"} == {
        "Its host cell1-host1 keeps local disks as lvm ([libvirt] images_type)."
    }


def test_rules_of_the_policy_that_nothing_asks_are_named(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text('"os_compute_api:servers:create": "role:member"\n"os_compute_api:os-cells": "!"\n')
    report = CleanCloud(tmp_path).check(policy=policy)
    assert codes(report, "os_compute_api:os-cells") == {"rule_unknown"}
    assert codes(report, "os_compute_api:servers:create") == set()


def test_a_broken_policy_file_blocks(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text('"os_compute_api:servers:create": !\n')
    report = CleanCloud(tmp_path).check(policy=policy)
    assert codes(report, str(policy)) == {"rules_broken"}
    assert report.is_blocked


def test_other_configurations_of_the_process_keep_their_policy_file(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text('"os_compute_api:servers:create": !\n')
    CleanCloud(tmp_path).check(policy=policy)
    conf = new_config()
    policy_opts.set_defaults(conf)
    assert conf.oslo_policy.policy_file == "policy.yaml"


def test_cells_that_causeway_lacks_are_named(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/own.sqlite"
    api = Database(url, API)
    schema.sync(api, "api")
    cells.save_cell(api, CellMapping("9a840ed0-6fba-488c-8d19-7b8445f726fb", "other", "none:///", "sqlite://"))
    cells.save_cell(api, CellMapping("00000000-0000-0000-0000-000000000000", "cell0", "none:///", "sqlite://"))
    cells.save_cell(api, CellMapping("11111111-0000-4000-8000-000000000000", "cell2", "none:///", "sqlite://"))
    api.close()
    own = tmp_path / "causeway.conf"
    own.write_text(f"[api_database]\nconnection = {url}\n")
    said = run(CleanCloud(tmp_path), "--config-file", str(own), "--format", "json")
    found = [each["id"] for each in json.loads(said.output)["findings"] if each["code"] == "cell_missing"]
    assert found == ["cell2"]


def test_numbers_in_names_of_guests_are_said(tmp_path: Path) -> None:
    cloud = CleanCloud(tmp_path)
    assert codes(cloud.check(), "deployment") == {"guest_names"}
    cloud.nova.conf.write_text(cloud.nova.conf.read_text() + "[DEFAULT]\ninstance_name_template = %(uuid)s\n")
    assert codes(cloud.check(), "deployment") == set()
