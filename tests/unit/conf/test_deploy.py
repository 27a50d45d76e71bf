"""The example configurations and systemd units of deploy/: every option is known, every unit is understood."""

from __future__ import annotations

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest
from keystoneauth1 import loading
from keystonemiddleware import opts as keystonemiddleware_opts
from oslo_policy import opts as policy_opts

from causeway.cli import processes
from causeway.cli.main import cli
from causeway.cli.web_processes import GRACE_SECONDS
from causeway.conf import new_config

DEPLOY = Path(__file__).parents[3] / "deploy"
ROLES = ("api", "metadata", "conductor", "cell-conductor", "scheduler", "compute", "console-proxy")
# Those of gunicorn end within its grace.
ENDS_WITHIN = {**processes.ENDS_WITHIN, "api": GRACE_SECONDS, "metadata": GRACE_SECONDS}


def files_of(role: str) -> list[Path]:
    """Conductors of cells and proxies of consoles have nothing to do with the services around."""
    own = DEPLOY / f"conf/{role}.conf"
    return [own] if role in ("cell-conductor", "console-proxy") else [DEPLOY / "conf/services.conf", own]


@pytest.mark.parametrize("role", ROLES)
def test_every_option_is_known_and_has_a_value_that_fits(role: str) -> None:
    conf = new_config(config_files=files_of(role))
    for _group, known in keystonemiddleware_opts.list_auth_token_opts():
        conf.register_opts(known, group="keystone_authtoken")
    conf.register_opts(loading.get_auth_common_conf_options(), group="keystone_authtoken")
    conf.register_opts(loading.get_auth_plugin_conf_options("password"), group="keystone_authtoken")
    policy_opts.set_defaults(conf)
    for path in files_of(role):
        # An option that is commented out is meant to be used, too.
        written = configparser.ConfigParser(interpolation=None)
        lines = path.read_text().splitlines()
        written.read_string("\n".join(line.removeprefix("# ") if " = " in line else line for line in lines))
        groups = {"DEFAULT": dict(written.defaults())} | {
            name: {key: each for key, each in written[name].items() if key not in written.defaults()}
            for name in written.sections()
        }
        for group, options in groups.items():
            for name in options:
                # Raises NoSuchOptError, ConfigFileValueError.
                assert getattr(conf if group == "DEFAULT" else conf[group], name) != ""


def test_conductors_of_cells_know_their_cell_and_nothing_else() -> None:
    conf = new_config(config_files=files_of("cell-conductor"))
    assert conf.conductor.role == "cell" and conf.database.connection.endswith("cell1")
    assert conf.api_database.connection is None and conf.placement.auth_type is None


def test_computes_have_no_database() -> None:
    conf = new_config(config_files=files_of("compute"))
    assert conf.api_database.connection is None and conf.database.connection is None


@pytest.mark.parametrize("role", ROLES)
def test_units_call_what_is_there_and_wait_for_its_end(role: str) -> None:
    """They call what is there with the files that are there, and wait for an orderly end."""
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[method-assign,assignment]
    unit.read(DEPLOY / f"systemd/causeway-{role}.service")
    service = unit["Service"]
    command, *arguments = service["ExecStart"].removeprefix("/usr/local/bin/causeway ").split()
    assert command == role.removeprefix("cell-")
    found = cli.get_command(None, command)  # type: ignore[arg-type]
    assert found is not None
    known = {option for parameter in found.params for option in parameter.opts}
    assert {each for each in arguments if each.startswith("--")} <= known
    files = [Path(each).name for each in arguments if each.endswith(".conf")]
    assert files == [path.name for path in files_of(role)]
    assert service["Restart"] == "on-failure"
    assert int(service["TimeoutStopSec"]) > ENDS_WITHIN[role]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd")
@pytest.mark.parametrize("role", ROLES)
def test_systemd_understands_the_units(role: str, tmp_path: Path) -> None:
    unit = tmp_path / f"causeway-{role}.service"
    text = (DEPLOY / f"systemd/causeway-{role}.service").read_text()
    # Causeway is not installed where this runs.
    unit.write_text(text.replace("/usr/local/bin/causeway", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, timeout=60)
    reported = [line for line in done.stderr.splitlines() if unit.name in line]
    assert reported == []
