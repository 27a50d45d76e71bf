"""What the options of a nova.conf mean: each has one verdict, and no value of them is shown."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import click.testing
import pytest

from causeway.adopt import Judged, Verdict, differing, judge
from causeway.cli.main import cli
from causeway.conf import list_opts, names_read, new_config, nova_options
from causeway.errors import Misconfigured
from tests.unit.adopt import nova_confs

ROLES = {"api": nova_confs.API, "conductor": nova_confs.CONDUCTOR, "compute": nova_confs.COMPUTE}


def of(tmp_path: Path, text: str) -> dict[str, Judged]:
    """Option, as it is printed -> the verdict on it."""
    file = tmp_path / "nova.conf"
    file.write_text(text)
    return {str(one): one for one in judge([file]).options}


def options(tmp_path: Path, *texts: str, more: tuple[str, ...] = ()) -> click.testing.Result:
    """What the command says of files with these texts."""
    files = []
    for number, text in enumerate(texts):
        file = tmp_path / f"nova{number}.conf"
        file.write_text(text)
        files += ["--nova-config", str(file)]
    return click.testing.CliRunner().invoke(cli, ["adopt", "options", *files, *more])


@pytest.mark.parametrize("role", ROLES)
def test_the_file_of_a_role_is_read_as_it_is_and_every_option_has_one_verdict(tmp_path: Path, role: str) -> None:
    text = ROLES[role]
    written = set()
    for section in re.split(r"^\[", text, flags=re.MULTILINE)[1:]:
        group, _, lines = section.partition("]\n")
        written |= {f"[{group}] {line.partition('=')[0].strip()}" for line in lines.splitlines() if "=" in line}
    file = tmp_path / "nova.conf"
    file.write_text(text)
    found = judge([file]).options
    assert sorted(map(str, found)) == sorted(written)
    assert [str(one) for one in found if "misspelt" in one.note or one.verdict is Verdict.REFUSED] == []


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_nothing_secret_is_printed(tmp_path: Path, role: str, form: tuple[str, ...]) -> None:
    said = options(tmp_path, ROLES[role], more=form)
    assert said.exit_code == 0
    assert "connection" in said.output or "transport_url" in said.output
    assert nova_confs.SECRET not in said.output
    assert "10.0.0." not in said.output


@pytest.mark.parametrize(
    ("option", "verdict", "says"),
    [
        ("[DEFAULT] compute_driver", Verdict.SAME, ""),
        ("[DEFAULT] host", Verdict.SAME, ""),
        ("[DEFAULT] transport_url", Verdict.DIFFERS, "must not be Nova's queue"),
        ("[DEFAULT] instance_name_template", Verdict.DIFFERS, "uuid"),
        ("[DEFAULT] instances_path", Verdict.DIFFERS, "No two hosts"),
        ("[DEFAULT] use_cow_images", Verdict.NO_EFFECT, "raw files can't be taken over"),
        ("[libvirt] volume_use_multipath", Verdict.NO_EFFECT, "one path"),
        ("[libvirt] images_type", Verdict.DIFFERS, "a pool of Ceph"),
        ("[libvirt] cpu_mode", Verdict.SAME, ""),
        ("[workarounds] skip_cpu_compare_on_dest", Verdict.NO_EFFECT, ""),
        ("[pci] passthrough_whitelist", Verdict.NO_EFFECT, "device_spec"),
        ("[privsep_entrypoint] helper_command", Verdict.NO_EFFECT, "no helper"),
        ("[neutron] password", Verdict.SAME, ""),
    ],
)
def test_an_option_of_a_compute_has_the_verdict_that_its_meaning_asks_for(
    tmp_path: Path, option: str, verdict: Verdict, says: str
) -> None:
    found = of(tmp_path, nova_confs.COMPUTE)[option]
    assert found.verdict is verdict
    assert says in found.note and bool(says) == bool(found.note)


@pytest.mark.parametrize("option", ["[api_database] connection", "[database] connection"])
def test_the_databases_of_nova_are_not_to_be_used(tmp_path: Path, option: str) -> None:
    found = of(tmp_path, nova_confs.API)[option]
    assert found.verdict is Verdict.DIFFERS
    assert "databases of its own" in found.note


@pytest.mark.parametrize(
    ("text", "option", "says"),
    [
        ("[DEFAULT]\ncompute_driver = ironic.IronicDriver", "[DEFAULT] compute_driver", "leave all others to Nova"),
        (
            "[libvirt]\nimages_type = lvm",
            "[libvirt] images_type",
            "Accepted: one of default, qcow2, rbd. Servers whose",
        ),
        (
            "[libvirt]\nimages_type = raw",
            "[libvirt] images_type",
            "Accepted: one of default, qcow2, rbd. Servers whose",
        ),
        (
            "[libvirt]\nimages_type = flat",
            "[libvirt] images_type",
            "Accepted: one of default, qcow2, rbd. Servers whose",
        ),
        ("[libvirt]\nvirt_type = lxc", "[libvirt] virt_type", "Accepted: one of auto, kvm, qemu."),
        ("[key_manager]\nbackend = vault", "[key_manager] backend", "Accepted: one of barbican."),
        (
            "[filter_scheduler]\nenabled_filters = JsonFilter,ComputeFilter",
            "[filter_scheduler] enabled_filters",
            "Take out",
        ),
        (
            "[filter_scheduler]\nweight_classes = nova.scheduler.weights.all_weighers",
            "[filter_scheduler] weight_classes",
            "Write all",
        ),
        ("[DEFAULT]\ninstances_path = instances", "[DEFAULT] instances_path", "Write an absolute path."),
        ("[libvirt]\nnfs_mount_point_base = mnt", "[libvirt] nfs_mount_point_base", "Write an absolute path."),
        ("[DEFAULT]\ninstance_name_template = server", "[DEFAULT] instance_name_template", "%(uuid)s"),
        ("[DEFAULT]\nreport_interval = often", "[DEFAULT] report_interval", "Accepted: a whole number from 1."),
        ("[DEFAULT]\ndebug = s3cr3t-of-nova", "[DEFAULT] debug", "Accepted: true or false."),
        ("[neutron]\nauth_type = mine", "[neutron] auth_type", "no such plug-in"),
        ("[vnc]\nserver_listen = $my_block_storage_ip", "[vnc] server_listen", "what follows its $ is no option"),
    ],
)
def test_a_value_that_is_not_accepted_is_refused_with_what_to_do(
    tmp_path: Path, text: str, option: str, says: str
) -> None:
    found = of(tmp_path, text)
    assert found[option].verdict is Verdict.REFUSED
    assert says in found[option].note
    said = options(tmp_path, text)
    assert said.exit_code == 1
    assert f"{option}: " in said.output


def test_all_values_that_are_refused_are_listed_at_once(tmp_path: Path) -> None:
    found = of(
        tmp_path, "[DEFAULT]\ncompute_driver = fake.FakeDriver\nreport_interval = -1\n[libvirt]\nimages_type = lvm\n"
    )
    assert [one.verdict for one in found.values()] == [Verdict.REFUSED] * 3


@pytest.mark.parametrize("option", ["[api_database]\ncell_timeout", "[placement]\ntimeout", "[DEFAULT]\ndebug"])
def test_a_refused_value_is_not_shown(tmp_path: Path, option: str) -> None:
    """Somebody put it into the wrong line."""
    said = options(tmp_path, f"{option} = {nova_confs.SECRET}\n")
    assert said.exit_code == 1
    assert nova_confs.SECRET not in said.output


def test_every_option_of_nova_has_one_verdict(tmp_path: Path) -> None:
    names = {(group, name) for group, listed in nova_options.NAMES.items() for name in listed}
    names |= {(group, "any") for group in nova_options.GROUPS}
    ours = {(group, option.dest) for group, listed in list_opts() for option in listed}
    assert names & ours == set()
    defaults = dict.fromkeys(("instances_path", "nfs_mount_point_base"), "$state_path/files")
    with (tmp_path / "nova.conf").open("w") as file:
        for group, name in sorted(names):
            file.write(f"[{group}]\n{name} = 1\n")
        for group, name in sorted(ours & {*differing.DIFFERS}):
            values = new_config() if group == "DEFAULT" else new_config()[group]
            value = defaults.get(name, values[name])
            value = ",".join(value) if isinstance(value, list) else value
            file.write(f"[{group}]\n{name} = {'' if value is None else str(value).replace('$', '$$')}\n")
    found = judge([tmp_path / "nova.conf"]).options
    assert max(Counter(map(str, found)).values()) == 1
    assert {(one.group, one.name) for one in found if one.verdict is Verdict.NO_EFFECT} == names
    assert [str(one) for one in found if "misspelt" in one.note] == []


def test_the_tables_name_only_options_that_there_are() -> None:
    read = set(names_read(new_config()).values())
    assert set(differing.DIFFERS) - read == set()
    assert set(differing.INSTEAD) - read == set()
    assert set(differing.OF_COMPUTES) - read == set()
    assert [each for each in differing.MATTERS if each[1] not in nova_options.NAMES[each[0]]] == []
    assert set(differing.MATTERING_GROUPS) - nova_options.GROUPS == set()


def test_later_files_win_and_a_former_name_counts_as_the_present_one(tmp_path: Path) -> None:
    first = "[libvirt]\nimages_type = lvm\n[DEFAULT]\ndhcp_domain = cloud\n"
    said = options(tmp_path, first, "[libvirt]\nimages_type = qcow2\n")
    assert said.exit_code == 0
    assert "Same meaning (1):\n  [DEFAULT] dhcp_domain\n" in said.output


def test_an_option_that_nobody_reads_is_said_to_be_misspelt(tmp_path: Path) -> None:
    found = of(tmp_path, "[libvirt]\nimage_type = qcow2\n")["[libvirt] image_type"]
    assert (found.verdict, "misspelt" in found.note) == (Verdict.NO_EFFECT, True)


def test_options_of_novas_libraries_are_not_said_to_be_misspelt(tmp_path: Path) -> None:
    text = "[DEFAULT]\nlog_options = false\nbackdoor_port = 0\ntcp_keepidle = 600\n[glance]\nservice_name = glance\n"
    found = of(tmp_path, text)
    assert {(str(one), one.verdict, one.note) for one in found.values()} == {
        (name, Verdict.NO_EFFECT, "") for name in found
    }


def test_a_compute_needs_the_folders_of_nova(tmp_path: Path) -> None:
    said = json.loads(options(tmp_path, "[libvirt]\nvirt_type = kvm\n", more=("--json",)).output)
    assert [(each["group"], each["option"]) for each in said["to_add"]] == [*differing.OF_COMPUTES]
    file = tmp_path / "nova.conf"
    file.write_text(nova_confs.COMPUTE)
    assert [each.name for each in judge([file]).to_add] == ["nfs_mount_point_base"]
    file.write_text(nova_confs.API)
    assert judge([file]).to_add == []


@pytest.mark.parametrize("line", ["password s3cr3t-of-nova", "[DEFAULT\npassword = s3cr3t-of-nova", "  s3cr3t-of-nova"])
def test_a_file_of_another_form_is_refused_without_its_content(tmp_path: Path, line: str) -> None:
    said = options(tmp_path, f"{line}\n")
    assert said.exit_code == 1
    assert "Error: " in said.output and "line 1" in said.output
    assert nova_confs.SECRET not in said.output


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "nova.conf"
    file.write_bytes(b"[DEFAULT]\nhost = \xff\xfe\n")
    with pytest.raises(Misconfigured, match="no text in UTF-8"):
        judge([file])
