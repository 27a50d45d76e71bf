"""What a command needs is in the extra that its table names, and whoever lacks it learns which one it is."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

import click
import grimp
import pytest
from click.testing import CliRunner
from packaging.utils import canonicalize_name

from causeway.cli import extras
from causeway.cli.compute import _driver
from causeway.cli.main import COMMANDS, cli
from causeway.conf import new_config
from tests.distributions import packages_of

# What a command imports only for some of what it does, after it has asked for this extra.
ON_DEMAND = {
    "up": {"libvirt"},
    "compute": {"libvirt", "embedded"},
    "manage": {"libvirt"},
    "adopt": {"client", "database", "libvirt", "embedded"},
    "audit": {"database"},
    "cloud": {"database"},
}
# Brought by other roles' packages, or by packages of theirs.
NOT_OF_A_HOST = {
    "alembic", "eventlet", "falcon", "gunicorn", "jsonschema", "jsonschema_rs", "numpy", "openstack", "oslo_db", "placement",
    "re2", "rich", "sqlalchemy", "websockify", "causeway.api", "causeway.devcloud", "causeway.embedded", "causeway.store",
    "causeway.virt.lab", "causeway.virt.simulated",
}  # fmt: skip


@cache
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("causeway", include_external_packages=True)


@cache
def distributions_of(module: str) -> set[str]:
    return {canonicalize_name(name) for name in metadata.packages_distributions().get(module, ())}


def is_embedded(module: str) -> bool:
    """Whether it is of the second distribution."""
    names = ("causeway.cli.demo", "causeway.cli.embedded", "causeway.devcloud", "causeway.embedded")
    return any(f"{module}.".startswith(f"{name}.") for name in (*names, "causeway.virt.lab", "causeway.virt.simulated"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_imports_nothing_but_what_its_extra_installs(command: str) -> None:
    needed = {*COMMANDS[command].extras, *ON_DEMAND.get(command, ())}
    installed = packages_of(*needed)
    imported = graph().find_upstream_modules(COMMANDS[command].module, as_package=True)
    for module in imported | {COMMANDS[command].module}:
        if module.startswith("causeway"):
            assert not is_embedded(module) or "embedded" in needed, module
        elif module not in sys.stdlib_module_names and distributions_of(module):
            assert distributions_of(module) & installed, f"{module} is not in {needed or 'the dependencies'}"


@pytest.mark.parametrize("extra", extras.MODULES)
def test_an_extra_is_known_by_modules_that_it_brings_and_nothing_else_does(extra: str) -> None:
    added = packages_of(extra) - packages_of()
    for module in extras.MODULES[extra]:
        assert module.startswith("causeway.") or distributions_of(module) & added, module


@pytest.mark.parametrize(
    ("command", "extra"), [(name, extra) for name, command in COMMANDS.items() for extra in command.extras]
)
def test_who_lacks_an_extra_learns_which_one(command: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in extras.MODULES[extra]:
        with monkeypatch.context() as hiding:
            hiding.setitem(sys.modules, module, None)
            said = CliRunner().invoke(cli, [command, "--help"])
        assert said.exit_code == 1
        assert (
            f"`causeway {command}` needs the extra '{extra}', which is not installed here (no {module})" in said.output
        )
        install = "causeway[postgresql]" if extra == "database" else f"causeway[{extra}]"
        assert f"pip install '{install}'" in said.output


def test_without_any_extra_the_commands_are_listed() -> None:
    hidden = {module for modules in extras.MODULES.values() for module in modules}
    assert "Run the compute service of one host" in with_hidden(hidden, "cli(['--help'])", "causeway.cli.main")


@pytest.mark.parametrize(
    ("driver", "extra", "module"), [("libvirt", "libvirt", "os_vif"), ("simulated", "embedded", "placement")]
)
def test_a_compute_says_which_extra_its_driver_needs(
    driver: str, extra: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "compute.conf"
    file.write_text(f"[DEFAULT]\ncompute_driver = {driver}\n")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(click.ClickException, match=rf"pip install 'causeway\[{extra}\]'"):
        _driver(new_config(config_files=[file]), tmp_path)


def test_a_host_needs_nothing_of_other_roles() -> None:
    """Its command and its driver are imported where all that is hidden."""
    pytest.importorskip("os_brick")
    libvirt = (
        "import causeway.virt.libvirt.driver, causeway.virt.libvirt.live.live_settings; cli(['compute', '--help'])"
    )
    assert "STATE_PATH/hosts/HOST" in with_hidden(NOT_OF_A_HOST, libvirt, "causeway.cli.main")


def test_a_host_that_is_to_be_taken_over_can_look_at_itself_with_what_it_has(tmp_path: Path) -> None:
    """The hypervisor is libvirt's own for tests, which has one guest."""
    pytest.importorskip("os_brick")
    (tmp_path / "compute_id").write_text("6f1c2f7e-7c0b-4a51-a6e4-2d1a4a9a3f10\n")
    file = tmp_path / "compute.conf"
    file.write_text(
        f"[DEFAULT]\nhost = host1\nstate_path = {tmp_path}\n"
        f"[libvirt]\nconnection_uri = test:///default\n[adopt]\nnova_state_path = {tmp_path}\n"
    )
    shown = with_hidden(NOT_OF_A_HOST, f"cli(['adopt', 'look', '--config-file={file}'])", "causeway.cli.main")
    assert "host1: not taken" in shown and "compute_id: 6f1c2f7e" in shown and " test running" in shown


def test_modules_of_a_host_lead_to_nothing_of_other_roles() -> None:
    """By no way of imports: also not by one that a test does not go."""
    of_host = {
        "causeway.cli.compute",
        "causeway.roles.compute",
        "causeway.compute.service",
        "causeway.virt.libvirt.driver",
    }
    for module in of_host:
        reached = graph().find_upstream_modules(module)
        reached -= {
            each for each in reached if each.startswith("causeway.virt.simulated") and module == "causeway.cli.compute"
        }
        assert not {each for each in reached if each in NOT_OF_A_HOST or is_embedded(each)}
        assert not {each for each in reached if each.startswith(("causeway.api.", "causeway.store."))}


def with_hidden(modules: set[str], program: str, command: str) -> str:
    """What a program prints in a process in which ``modules`` can't be imported."""
    lines = [
        "import sys",
        f"sys.modules.update(dict.fromkeys({sorted(modules)!r}))",
        f"from {command} import cli",
        program,
    ]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "\n".join(lines)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
