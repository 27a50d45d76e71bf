"""Options that can't be end a process; those that do nothing are reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from oslo_config import cfg

from causeway.conf import ignored, list_opts, new_config, nova_options
from causeway.model import versions
from causeway.model.instance import name_guest


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "causeway.conf"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("group", "line", "accepted"),
    [
        ("api", "max_limit = many", "a whole number from 0"),
        ("api", "max_limit = -1", "a whole number from 0"),
        ("DEFAULT", "vif_plugging_is_fatal = perhaps", "true or false"),
        ("conductor", "role = boss", "one of all, super, cell"),
        ("moves", "lease = x", "a number from 0.3"),
        ("upgrade_levels", "compute = yesterday", "such as 1.14"),
        ("upgrade_levels", "compute = 1.13", "such as 1.14"),
        ("quota", "cores = 1.5", "a whole number from -1"),
        ("DEFAULT", "disk_transfer_port = 70000", "to 65535"),
    ],
)
def test_a_value_that_can_not_be_is_reported_at_once(tmp_path: Path, group: str, line: str, accepted: str) -> None:
    file = written(tmp_path, f"[{group}]\n{line}\n")
    with pytest.raises(cfg.ConfigFileValueError) as reported:
        new_config(config_files=[file])
    assert f"[{group}] {line.split()[0]}: " in str(reported.value) and accepted in str(reported.value)


def test_what_does_nothing_is_reported(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "[DEFAULT]\nreboot_timeout = 60\nhost = h\ntransport_url = rabbit://\nlog_dir = /x\nno_such = 1\n"
        "[quota]\nmax_age = 5\ncores = 5\n[workarounds]\nlibvirt_disable_apic = 1\n"
        "[keystone_authtoken]\nwww_authenticate_uri = x\nusername = u\nmemcached_servers = y\n"
        "[neutron]\nauth_type = password\nauth_url = http://x\nusername = u\n"
        "[oslo_messaging_rabbit]\nheartbeat_rate = 3\n[oslo_policy]\npolicy_file = p\n[mine]\nown = 1\n"
        "[glance]\nendpoint-override = http://x\n",
    )
    found = ignored(new_config(config_files=[file]))
    assert found.not_here == [
        "[DEFAULT] reboot_timeout",
        "[quota] max_age",
        "[workarounds] libvirt_disable_apic",
    ]
    assert found.unknown == ["[DEFAULT] no_such", "[mine] own"]
    assert "nova.conf has them" in str(found) and "unknown: " in str(found)


def test_misspelt_options_of_tokens_are_reported_only_by_what_reads_them(tmp_path: Path) -> None:
    conf = new_config(config_files=[written(tmp_path, "[keystone_authtoken]\nno_such = 1\n[mine]\nown = 1\n")])
    assert ignored(conf).unknown == ["[keystone_authtoken] no_such", "[mine] own"]
    assert ignored(conf, with_tokens=False).unknown == ["[mine] own"]


def test_good_options_report_nothing(tmp_path: Path) -> None:
    assert not ignored(new_config(config_files=[written(tmp_path, "[DEFAULT]\nhost = h\n")]))
    assert not ignored(new_config())


@pytest.mark.parametrize("name", ["api", "conductor", "scheduler", "compute", "cell-conductor"])
def test_the_examples_of_deploy_are_followed(name: str) -> None:
    folder = Path(__file__).parents[3] / "deploy" / "conf"
    assert not ignored(new_config(config_files=[folder / "services.conf", folder / f"{name}.conf"]))


def test_options_that_are_here_are_not_called_missing() -> None:
    ours = {(group, option.dest) for group, options in list_opts() for option in options}
    theirs = {(group, name) for group, names in nova_options.NAMES.items() for name in names}
    assert ours & theirs == set()
    assert nova_options.GROUPS & {group for group, _options in list_opts()} == {"workarounds"}


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("instance-%(uuid)s", "instance-11111111-2222-4333-8444-555555555555"),
        ("instance-%08x", "instance-11111111222243338444555555555555"),
        ("instance-%(id)08x", "instance-11111111222243338444555555555555"),
        ("%(hostname)s-%(uuid)s", "h-11111111-2222-4333-8444-555555555555"),
    ],
)
def test_guests_are_named_by_the_template(template: str, name: str) -> None:
    given = new_config(instance_name_template=template).instance_name_template
    assert name_guest(given, "11111111-2222-4333-8444-555555555555", "p", "u", "h") == name


@pytest.mark.parametrize(
    "template", ["guest", "%(hostname)s", "%(nothing)s", "%s-%s", "a/%(uuid)s", "%(uuid)s\n", "%q"]
)
def test_templates_that_name_servers_alike_are_refused(template: str) -> None:
    with pytest.raises(cfg.ConfigFileValueError, match="instance_name_template"):
        new_config(instance_name_template=template)


@pytest.mark.parametrize(
    ("level", "cap"),
    [(None, None), ("auto", None), ("1.14", "1.14"), ("1.20", "1.20"), ("train", None), ("2026.1", None)],
)
def test_releases_of_nova_are_taken(tmp_path: Path, level: str | None, cap: str | None) -> None:
    text = f"[upgrade_levels]\ncompute = {level}\n" if level else ""
    given = new_config(config_files=[written(tmp_path, text)]).upgrade_levels.compute
    assert versions.cap(given) == cap


def test_a_dollar_sign_that_was_not_meant_is_reported_without_its_value(tmp_path: Path) -> None:
    file = tmp_path / "causeway.conf"
    file.write_text("[api_database]\nconnection = mysql+pymysql://user:p$secret@host/api\n")
    with pytest.raises(cfg.ConfigFileValueError, match=r"\[api_database\] connection: .* Write \$\$") as raised:
        new_config(config_files=[file])
    assert "secret" not in str(raised.value)
