"""Options: names and defaults of Nova, files and overrides, and the generated example."""

from __future__ import annotations

import importlib
import logging
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from oslo_config import cfg
from oslo_log import formatters

from causeway import conf
from causeway.conf import library_defaults, list_opts, new_config

DEFAULTS = {
    "DEFAULT": {
        "rpc_response_timeout": 60,
        "long_rpc_timeout": 1800,
        "report_interval": 10,
        "service_down_time": 60,
        "resize_confirm_window": 0,
        "vif_plugging_timeout": 300,
        "vif_plugging_is_fatal": True,
        "shutdown_timeout": 60,
        "reserved_host_memory_mb": 512,
        "initial_cpu_allocation_ratio": 4.0,
        "initial_ram_allocation_ratio": 1.0,
        "initial_disk_allocation_ratio": 1.0,
        "allow_resize_to_same_host": False,
        "default_availability_zone": "nova",
        "password_length": 12,
        "enable_new_services": True,
    },
    "api": {"max_limit": 1000, "list_records_by_skipping_down_cells": True},
    "quota": {"instances": 10, "cores": 20, "ram": 51200, "key_pairs": 100, "injected_files": 5},
    "notifications": {
        "notification_format": "unversioned",
        "versioned_notifications_topics": ["versioned_notifications"],
        "notify_on_state_change": None,
        "bdms_in_notifications": False,
    },
    "neutron": {"http_retries": 3, "valid_interfaces": ["internal", "public"]},
    "cinder": {"catalog_info": "volumev3::publicURL", "http_retries": 3},
    "glance": {"num_retries": 3},
    "service_user": {"send_service_user_token": False},
}


@pytest.mark.parametrize(("group", "expected"), DEFAULTS.items())
def test_defaults_are_novas(group: str, expected: dict[str, object]) -> None:
    conf = new_config()
    options = conf if group == "DEFAULT" else conf[group]
    assert {name: options[name] for name in expected} == expected


def test_every_option_is_explained() -> None:
    assert [f"[{group}] {option.name}" for group, options in list_opts() for option in options if not option.help] == []


def test_no_option_is_defined_twice() -> None:
    for group, options in list_opts():
        names = [option.dest for option in options]
        assert len(names) == len(set(names)), group


def test_files_are_read_and_overrides_win(tmp_path: Path) -> None:
    (tmp_path / "causeway.conf").write_text(
        "[DEFAULT]\nhost = from-file\nstate_path = /srv\n[api]\nmax_limit = 5\n"
        "[neutron]\nauth_type = password\nauth_url = http://identity\nusername = causeway\n"
    )
    conf = new_config(config_files=[tmp_path / "causeway.conf"], host="given", api={"max_limit": 7})
    assert (conf.host, conf.api.max_limit, conf.state_path) == ("given", 7, "/srv")
    assert (conf.neutron.auth_url, conf.neutron.username) == ("http://identity", "causeway")


def test_two_configurations_know_nothing_of_one_another() -> None:
    assert (new_config(host="a").host, new_config(host="b").host) == ("a", "b")


def test_mistakes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(cfg.NoSuchOptError):
        new_config(no_such_option=1)
    with pytest.raises(cfg.ConfigFilesNotFoundError):
        new_config(config_files=[tmp_path / "missing.conf"])
    with pytest.raises(cfg.ConfigFileValueError):
        new_config(neutron={"auth_type": "no-such-plugin"})
    with pytest.raises(ValueError, match="abc"):
        new_config(api={"max_limit": "abc"}).api.max_limit  # noqa: B018


def test_the_example_in_the_documentation_is_what_the_options_say() -> None:
    made = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "causeway.conf.sample"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    kept = Path(__file__).parents[3] / "docs" / "causeway.conf.sample"
    assert _ours(made.stdout) == _ours(kept.read_text())


@pytest.mark.parametrize("name", ["ironic.IronicDriver", "nova.virt.libvirt.LibvirtDriver", "fake.FakeDriver", ""])
def test_a_hypervisor_that_is_not_served_is_refused(tmp_path: Path, name: str) -> None:
    file = tmp_path / "nova.conf"
    file.write_text(f"[DEFAULT]\ncompute_driver = {name}\n")
    with pytest.raises(cfg.ConfigFileValueError) as refused:
        new_config(config_files=[file])
    assert "[DEFAULT] compute_driver: " in str(refused.value)
    assert "Accepted: one of libvirt, libvirt.LibvirtDriver, simulated." in str(refused.value)


def test_every_module_of_options_is_registered() -> None:
    """What is not has no options in any process, and none in the example."""
    found = (importlib.import_module(one.name) for one in pkgutil.iter_modules(conf.__path__, f"{conf.__name__}."))
    assert {module.__name__ for module in found if hasattr(module, "OPTS")} == {one.__name__ for one in conf.MODULES}


def test_the_lines_of_a_traceback_have_the_level_of_their_record() -> None:
    """oslo.log's own default says ERROR before each of them, whatever the level."""
    record = logging.LogRecord("test", logging.INFO, "file", 1, "it failed", (), None)
    try:
        raise ValueError("why")
    except ValueError:
        record.exc_info = sys.exc_info()
    text = formatters.ContextFormatter(config=new_config(), version="1").format(record)
    assert "ValueError: why" in text and "ERROR" not in text
    example = (Path(__file__).parents[3] / "docs" / "causeway.conf.sample").read_text()
    assert f"\n#logging_exception_prefix = {library_defaults.TRACEBACK_PREFIX}\n" in example


def _ours(sample: str) -> list[str]:
    """The lines of our own groups: the libraries' differ from version to version."""
    groups = {f"[{group}]" for group, _options in list_opts() if group not in ("DEFAULT",)}
    lines, inside = [], False
    for line in sample.splitlines():
        if line.startswith("["):
            inside = line in groups
        if inside:
            lines.append(line)
    return lines
