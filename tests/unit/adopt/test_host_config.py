"""`causeway adopt host-config`, as operators type it on a host."""

from __future__ import annotations

import configparser
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from oslo_config import cfg, iniparser

from causeway.adopt import differing, host_config, nova_values
from causeway.cli.main import cli
from causeway.conf import new_config
from tests.unit.adopt import nova_confs

DEPLOYED = Path(__file__).parents[3] / "deploy/systemd/causeway-compute.service"
FILES = ("causeway-compute.conf", "causeway-compute.local.conf", "causeway-compute.service", "nova-compute-fence.conf")


class Host:
    def __init__(self, folder: Path, nova_conf: str) -> None:
        self.etc, self.output = folder / "etc-nova", folder / "etc-causeway"
        self.etc.mkdir()
        self.nova_conf = self.etc / "nova.conf"
        self.nova_conf.write_text(nova_conf)

    def run(self, *more: str, **options: Any) -> Result:
        words = ["adopt", "host-config", f"--nova-config={self.nova_conf}", *more]
        if not any(word.startswith("--output") for word in more):
            words.append(f"--output={self.output}")
        return CliRunner().invoke(cli, words, **options)

    def answer(self, *more: str, **options: Any) -> dict[str, Any]:
        result = self.run("--json", *more, **options)
        assert result.exit_code == 0, result.output
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    def text(self, name: str = FILES[0]) -> str:
        return (self.output / name).read_text()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path, nova_confs.COMPUTE)


def test_a_compute_reads_what_was_written_of_a_nova_conf(host: Host) -> None:
    host.answer("--transport-url-file=-", input="rabbit://causeway:pa$$word@rabbit:5672/cell1\n")
    conf = new_config(config_files=[host.output / FILES[0], host.output / FILES[1]])
    assert (conf.host, conf.my_ip, conf.compute_driver) == ("compute1", "10.0.0.11", "libvirt.LibvirtDriver")
    assert conf.transport_url == "rabbit://causeway:pa$$word@rabbit:5672/cell1"
    assert (conf.state_path, conf.instances_path) == ("/var/lib/causeway", "/var/lib/nova/instances")
    assert (conf.libvirt.nfs_mount_point_base, conf.adopt.nova_state_path) == ("/var/lib/nova/mnt", "/var/lib/nova")
    assert conf.adopt.nova_config_dirs == [str(host.etc)]
    assert conf.vnc.server_listen == "10.0.0.11"
    assert conf.placement.password == nova_confs.SECRET
    assert conf.libvirt.images_rbd_pool == "vms"


def test_no_password_of_a_database_or_of_novas_queue_is_written(host: Host) -> None:
    host.nova_conf.write_text(
        nova_confs.COMPUTE
        + "[database]\nconnection = mysql://nova:of-a-database@db/nova\n[api_database]\nconnection = mysql://n:of-a-database@db/a\n"
        + "[keystone_authtoken]\npassword = of-the-api\n[oslo_messaging_notifications]\ntransport_url = rabbit://n:of-a-queue@r/\n"
        + "[neutron]\nmetadata_proxy_shared_secret = of-metadata\n[barbican_service_user]\npassword = of-keys\n"
    )
    answer = host.answer()
    for secret in ("of-a-database", "of-the-api", "of-a-queue", "of-metadata", "of-keys", "rabbit://openstack"):
        assert secret not in host.text()
    left_out = {(each["group"], each["option"]) for each in answer["left_out"]}
    assert {("database", "connection"), ("DEFAULT", "transport_url"), ("keystone_authtoken", "password")} <= left_out


def test_an_account_that_another_group_uses_is_copied(host: Host) -> None:
    host.nova_conf.write_text(
        nova_confs.COMPUTE + "[cinder]\nauth_section = keystone_authtoken\n[keystone_authtoken]\npassword = of-cinder\n"
    )
    host.answer()
    assert "password = of-cinder" in host.text()


def test_no_value_is_shown(host: Host) -> None:
    assert nova_confs.SECRET not in host.run().output + host.run("--json").output


def test_only_their_owner_reads_the_files_with_passwords(host: Host) -> None:
    host.answer()
    (host.output / FILES[0]).chmod(0o644)
    host.answer()
    modes = {name: (host.output / name).stat().st_mode & 0o777 for name in FILES}
    assert modes == dict(zip(FILES, (0o600, 0o600, 0o644, 0o644), strict=True))


def test_a_second_run_changes_nothing(host: Host) -> None:
    host.answer()
    # A file that is written anew is another one.
    before = {name: (host.output / name).stat().st_ino for name in FILES}
    answer = host.answer()
    assert answer["written"] == [] and len(answer["unchanged"]) == len(FILES)
    assert {name: (host.output / name).stat().st_ino for name in FILES} == before


def test_what_has_changed_in_nova_is_written_and_what_is_the_hosts_own_is_not(host: Host) -> None:
    host.answer()
    own = host.output / FILES[1]
    own.write_text("[DEFAULT]\ntransport_url = rabbit://mine/cell1\n")
    host.nova_conf.write_text(host.nova_conf.read_text().replace("10.0.0.11", "10.0.0.12"))
    answer = host.answer()
    assert answer["written"] == [str(host.output / FILES[0])]
    assert own.read_text() == "[DEFAULT]\ntransport_url = rabbit://mine/cell1\n"
    assert new_config(config_files=[host.output / FILES[0], own]).my_ip == "10.0.0.12"


def test_the_queue_is_to_be_written_until_it_is_there(host: Host) -> None:
    def says_so() -> bool:
        return any("transport_url" in each for each in host.answer()["to_do"])

    assert says_so()
    own = host.output / FILES[1]
    text = own.read_text()
    own.write_text(text.replace("# transport_url", "transport_url"))
    assert not says_so()


def test_a_run_that_is_given_no_queue_keeps_the_one_of_an_earlier_run(host: Host) -> None:
    host.answer("--transport-url-file=-", input="rabbit://causeway:pa$$word@rabbit/cell1\n")
    before = host.text()
    assert host.answer()["written"] == []
    assert host.text() == before


def test_novas_queue_is_refused(host: Host) -> None:
    queue = f"rabbit://openstack:{nova_confs.SECRET}@10.0.0.1:5672//\n"
    result = host.run("--transport-url-file=-", input=queue)
    assert result.exit_code == 1 and "Nova's queue" in result.output
    assert not host.output.exists()


@pytest.mark.parametrize("below", ["", "causeway"])
def test_nothing_is_written_into_the_folder_of_novas_files(host: Host, below: str) -> None:
    result = host.run(f"--output={host.etc / below}")
    assert result.exit_code == 2 and "which is Nova's" in result.output
    assert list(host.etc.iterdir()) == [host.nova_conf]


def test_nothing_is_written_into_novas_state_path_by_another_name(host: Host, tmp_path: Path) -> None:
    state = tmp_path / "nova"
    state.mkdir()
    (tmp_path / "link").symlink_to(state)
    host.nova_conf.write_text(host.nova_conf.read_text().replace("/var/lib/nova", str(state)))
    assert host.run(f"--output={tmp_path / 'link' / 'causeway'}").exit_code == 2
    assert list(state.iterdir()) == []
    assert host.run(f"--state-path={state}").exit_code == 1


def test_values_that_are_refused_are_named_and_nothing_is_written(host: Host, tmp_path: Path) -> None:
    host.nova_conf.write_text(host.nova_conf.read_text().replace("images_type = rbd", "images_type = raw"))
    result = host.run()
    assert result.exit_code == 1 and "[libvirt] images_type: Accepted:" in result.output
    assert not host.output.exists()
    override = tmp_path / "override.conf"
    override.write_text("[libvirt]\nimages_type = qcow2\n")
    host.answer(f"--override={override}")
    assert "images_type = qcow2" in host.text()
    # A folder that is not Nova's need not stay there.
    assert f"nova_config_dirs = {host.etc}\n" in host.text()


def test_novas_accounts_are_named_until_the_host_has_its_own(host: Host, tmp_path: Path) -> None:
    def named(*more: str) -> str:
        return next((each for each in host.answer(*more)["to_do"] if "Nova's account" in each), "").partition(":")[0]

    assert named() == "[neutron], [placement], [service_user]"
    override = tmp_path / "override.conf"
    override.write_text("[service_user]\nusername = nova-compute\npassword = of-hosts\n")
    assert named(f"--override={override}") == "[neutron], [placement]"
    assert "password = of-hosts" in host.text()
    own = "[neutron]\npassword = of-hosts\n[placement]\npassword = of-hosts\n"
    (host.output / FILES[1]).write_text(own)
    assert named(f"--override={override}") == ""


def test_what_only_other_roles_read_blocks_no_compute(host: Host) -> None:
    host.nova_conf.write_text(
        nova_confs.COMPUTE + "[filter_scheduler]\nenabled_filters = OfOurOwn\n[upgrade_levels]\ncompute = 27.0\n"
    )
    host.answer()
    assert "OfOurOwn" not in host.text()


def test_files_that_are_not_a_computes_are_refused(tmp_path: Path) -> None:
    result = Host(tmp_path, nova_confs.CONDUCTOR).run()
    assert result.exit_code == 1 and "not a compute's" in result.output


def test_files_that_do_not_say_where_nova_keeps_its_state_are_refused(host: Host) -> None:
    host.nova_conf.write_text("[DEFAULT]\ncompute_driver = libvirt.LibvirtDriver\n")
    result = host.run()
    assert result.exit_code == 1 and "nova-dist.conf" in result.output


def test_references_to_options_that_are_left_out_are_replaced(host: Host) -> None:
    host.nova_conf.write_text(
        "[DEFAULT]\ncompute_driver = libvirt.LibvirtDriver\nstate_path = /srv/nova\ntempdir = $state_path/tmp\nmy_ip = 10.0.0.1\n"
        "disk_transfer_pki_dir = ${state_path}/pki\n[libvirt]\nlive_migration_inbound_addr = $my_ip\nrbd_user = a$$b\n"
        "[os_vif_ovs]\novsdb_connection = tcp:$my_ip:6640\n[os_brick]\nwait_mpath_device_attempts = $bindir\n"
        "[oslo_one]\nfolder = $tempdir/a\n"
    )
    answer = host.answer()
    text = host.text()
    assert "live_migration_inbound_addr = $my_ip" in text and "rbd_user = a$$b" in text
    # The library does not know our options.
    assert "ovsdb_connection = tcp:10.0.0.1:6640" in text
    assert "disk_transfer_pki_dir = /srv/nova/pki" in text and "folder = /srv/nova/tmp/a" in text
    assert "/srv/nova/instances" in text and "/srv/nova/mnt" in text
    assert [each["note"] for each in answer["left_out"] if each["option"] == "wait_mpath_device_attempts"] == [
        "Its value names $bindir, which these files do not set: write it yourself."
    ]


def test_an_option_that_may_be_written_often_keeps_all_its_values_and_others_the_last(host: Host) -> None:
    host.nova_conf.write_text(
        "[DEFAULT]\ncompute_driver = libvirt.LibvirtDriver\nstate_path = /srv/nova\nmy_ip = 10.0.0.1\nmy_ip = 10.0.0.2\n"
        '[pci]\ndevice_spec = {"address": "1"}\ndevice_spec = {"address": "2"}\n'
    )
    host.answer()
    conf = new_config(config_files=[host.output / FILES[0]])
    assert conf.my_ip == "10.0.0.2" and "10.0.0.1\n" not in host.text()
    assert conf.pci.device_spec == ['{"address": "1"}', '{"address": "2"}']


def test_a_host_without_a_name_in_its_files_is_this_machine_and_that_is_said(host: Host) -> None:
    host.nova_conf.write_text(host.nova_conf.read_text().replace("host = compute1\n", ""))
    answer = host.answer()
    assert f"host = {answer['host']}\n" in host.text()
    assert any("do not name the host" in each for each in answer["to_do"])


def test_all_that_has_to_be_added_for_a_compute_is_written() -> None:
    assert set(differing.OF_COMPUTES) == set(host_config.NOVA_FOLDERS)


def test_the_unit_is_the_one_that_is_deployed_with_other_files(host: Host) -> None:
    host.answer("--program=/opt/causeway/bin/causeway")
    made, deployed = (_unit(text) for text in (host.text(FILES[2]), DEPLOYED.read_text()))
    configs = " ".join(f"--config-file {host.output / name}" for name in FILES[:2])
    assert made["Service"].pop("ExecStart") == f"/opt/causeway/bin/causeway compute {configs}"
    assert made["Service"].pop("EnvironmentFile") == "-/etc/default/causeway-compute"
    del deployed["Service"]["ExecStart"]
    assert made["Service"] == deployed["Service"] and made["Install"] == deployed["Install"]
    assert made["Unit"]["After"].endswith(" nova-compute.service")
    assert "Conflicts" not in made["Unit"], "it must be able to look beside nova-compute"
    assert "/var/lib/nova/instances" in made["Unit"]["RequiresMountsFor"].split()


def test_nova_compute_is_not_started_where_the_mark_of_the_owner_is(host: Host, tmp_path: Path) -> None:
    host.answer(f"--state-path={tmp_path / 'state'}")
    condition = _unit(host.text(FILES[3]))["Unit"]["AssertPathExists"]
    assert condition == f"!{tmp_path}/state/hosts/compute1/taken"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_finds_nothing_wrong_with_the_units(host: Host, tmp_path: Path) -> None:
    host.answer("--program=/bin/true", f"--state-path={tmp_path / 'a state'}")
    units = tmp_path / "units"
    fences = units / "nova-compute.service.d"
    fences.mkdir(parents=True)
    shutil.copy(host.output / FILES[2], units)
    shutil.copy(host.output / FILES[3], fences / "causeway.conf")
    nova = units / "nova-compute.service"
    nova.write_text("[Service]\nExecStart=/bin/true\n")
    said = subprocess.run(
        ["systemd-analyze", "verify", units / FILES[2], nova],
        env=os.environ | {"SYSTEMD_UNIT_PATH": f"{units}:"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "causeway" not in said.stderr and "Unknown" not in said.stderr, said.stderr


def _unit(text: str) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser()
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("C", "Z"), include_characters=" \"'$#=[")))
def test_a_value_that_is_written_is_read_as_it_was(value: str) -> None:
    read: dict[str, dict[str, list[str]]] = {}
    parser = cfg.ConfigParser("", read)
    iniparser.BaseParser.parse(parser, ["[group]", nova_values.line("name", value)])
    assert read == {"group": {"name": [value]}}
