"""Options that name files and folders (`causeway.conf.paths`)."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from oslo_config import cfg

from causeway.conf import list_opts, new_config, paths
from causeway.conf.paths import NO_PATHS, PATHS, Named, PathMissing, PathOption, PathRelative

LOOKS_LIKE_A_PATH = re.compile(r"(file|path|dir|cert|key|keys|pem)s?$")
CHECKED = [option for option in PATHS if option.named not in (Named.MADE, Named.LASTING)]
LASTING = [option for option in PATHS if option.named is Named.LASTING]
# In this order each role reads its options, and ends before it does anything else.
CAUSEWAY = str(Path(sys.executable).with_name("causeway"))
ROLES = ("api", "metadata", "conductor", "scheduler", "compute", "console-proxy")


def named(option: PathOption) -> str:
    return f"[{option.group}] {option.name}"


def config_of(tmp_path: Path, group: str, name: str, value: str) -> cfg.ConfigOpts:
    file = tmp_path / "causeway.conf"
    file.write_text(f"[{group}]\n{name} = {value}\n")
    return new_config(config_files=[file])


def test_every_option_that_looks_like_a_path_is_one_or_is_said_to_be_none() -> None:
    found = {
        (group, option.dest)
        for group, options in list_opts()
        for option in options
        if LOOKS_LIKE_A_PATH.search(option.dest)
    }
    assert found - {(option.group, option.name) for option in PATHS} == NO_PATHS


@pytest.mark.parametrize("option", CHECKED, ids=named)
@pytest.mark.parametrize("where", ["/nowhere/at-all", "nowhere/at-all"])
def test_what_is_not_there_is_an_error(tmp_path: Path, option: PathOption, where: str) -> None:
    conf = config_of(tmp_path, option.group, option.name, where)
    with pytest.raises(PathMissing) as missing:
        paths.resolve(conf)
    assert named(option) in str(missing.value)
    assert str(Path(where).absolute()) in str(missing.value)


@pytest.mark.parametrize("option", CHECKED, ids=named)
def test_a_relative_path_is_one_from_where_the_process_was_started(
    tmp_path: Path, option: PathOption, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    there = tmp_path / "there"
    if option.named is Named.FOLDER:
        there.mkdir()
    else:
        there.write_text("")
    conf = config_of(tmp_path, option.group, option.name, "there")
    paths.resolve(conf)
    values = conf if option.group == "DEFAULT" else conf[option.group]
    assert values[option.name] in (str(there), [str(there)])
    # A second look finds what the first one found.
    paths.resolve(conf)


@pytest.mark.parametrize(
    ("make", "option"),
    [
        (Path.mkdir, PathOption("oslo_policy", "policy_file", Named.FILE)),
        (Path.touch, PathOption("rpc_signatures", "trusted_keys", Named.FOLDER)),
    ],
)
def test_a_folder_is_no_file(tmp_path: Path, make: Callable[[Path], None], option: PathOption) -> None:
    make(tmp_path / "there")
    with pytest.raises(PathMissing, match="is no"):
        paths.resolve(config_of(tmp_path, option.group, option.name, str(tmp_path / "there")))


def test_a_policy_file_may_lie_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("")
    conf = config_of(tmp_path, "oslo_policy", "policy_file", "mine.yaml")
    paths.resolve(conf)
    assert conf.oslo_policy.policy_file == str(tmp_path / "mine.yaml")


def test_what_nobody_named_need_not_be_there(tmp_path: Path) -> None:
    conf = config_of(tmp_path, "DEFAULT", "host", "host1")
    before = conf.oslo_policy.policy_file if "oslo_policy" in conf else "policy.yaml"
    paths.resolve(conf)
    assert conf.oslo_policy.policy_file == before


def test_what_a_service_makes_need_not_be_there_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    conf = config_of(tmp_path, "DEFAULT", "state_path", "state")
    paths.resolve(conf)
    assert conf.state_path == str(tmp_path / "state")


@pytest.mark.parametrize("option", LASTING, ids=named)
def test_where_guests_have_their_files_does_not_depend_on_where_a_process_starts(
    tmp_path: Path, option: PathOption
) -> None:
    with pytest.raises(PathRelative, match=re.escape(f"{named(option)} = nova/files is a relative path")):
        paths.resolve(config_of(tmp_path, option.group, option.name, "nova/files"))


@pytest.mark.parametrize("option", LASTING, ids=named)
@pytest.mark.parametrize("state_path", ["/var/lib/nova", "state"])
def test_a_path_below_the_state_path_is_written_as_in_nova(
    tmp_path: Path, option: PathOption, state_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "nova.conf"
    own = {"DEFAULT": "", "libvirt": ""} | {option.group: f"{option.name} = $state_path/files\n"}
    file.write_text(f"[DEFAULT]\nstate_path = {state_path}\n{own['DEFAULT']}[libvirt]\n{own['libvirt']}")
    conf = new_config(config_files=[file])
    paths.resolve(conf)
    values = conf if option.group == "DEFAULT" else conf[option.group]
    assert values[option.name] == str(tmp_path / state_path / "files")


@pytest.mark.parametrize("role", ROLES)
def test_no_role_starts_without_its_policy_file(tmp_path: Path, role: str) -> None:
    file = tmp_path / "causeway.conf"
    file.write_text("[oslo_policy]\npolicy_file = mine.yaml\n")
    command = [CAUSEWAY, role, f"--config-file={file}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode != 0
    assert "[oslo_policy] policy_file = mine.yaml: there is no file" in done.stderr


@pytest.mark.parametrize("given", ["mine.yaml", "/nowhere/mine.yaml"])
def test_no_cloud_starts_without_its_policy_file(tmp_path: Path, given: str) -> None:
    command = [CAUSEWAY, "up", "--state-dir", str(tmp_path / "state")]
    done = subprocess.run([*command, "--policy-file", given], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode != 0
    assert "mine.yaml" in done.stderr and "does not exist" in done.stderr
    assert not (tmp_path / "state").exists()
