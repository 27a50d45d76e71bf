"""``causeway``: the one command, with a subcommand for each thing one does with a cloud."""

from __future__ import annotations

import importlib
import warnings
from typing import NamedTuple

import click

from causeway.cli import extras

# oslo.utils imports Eventlet where it is installed, and it warns of itself; nothing here uses it.
warnings.filterwarnings("ignore", message="(?s).*Eventlet is deprecated")


class Command(NamedTuple):
    """A command, with the extras that it needs. Its module is only loaded when it is used."""

    module: str
    function: str
    extras: tuple[str, ...]
    help: str


COMMANDS = {
    "up": Command(
        "causeway.cli.embedded.up", "up", ("embedded",), "Run a whole cloud in this process, on embedded parts."
    ),
    "api": Command("causeway.cli.web", "api", ("api",), "Run the Compute API in processes of its own."),
    "metadata": Command("causeway.cli.web", "metadata", ("api",), "Run the metadata service in processes of its own."),
    "conductor": Command(
        "causeway.cli.conductor", "conductor", ("database",), "Run a conductor in a process of its own."
    ),
    "scheduler": Command(
        "causeway.cli.scheduler", "scheduler", ("database",), "Run a scheduler in a process of its own."
    ),
    "compute": Command(
        "causeway.cli.compute", "compute", (), "Run the compute service of one host in a process of its own."
    ),
    "console-proxy": Command(
        "causeway.cli.console_proxy",
        "console_proxy",
        ("console-proxy",),
        "Run a proxy of consoles in a process of its own.",
    ),
    "devcloud": Command(
        "causeway.cli.embedded.devcloud",
        "devcloud",
        ("embedded",),
        "Run small stand-ins for the services around, and Placement.",
    ),
    "manage": Command(
        "causeway.cli.manage", "manage", ("database",), "Databases and cells of a cloud of many processes."
    ),
    "audit": Command(
        "causeway.cli.audit",
        "audit",
        ("client",),
        "Short for `cloud audit`: compare everything that knows of servers; fix what is safe.",
    ),
    "cloud": Command(
        "causeway.cli.cloud",
        "cloud",
        ("client",),
        "`cloud audit`: compare everything that knows of servers; fix what is safe.",
    ),
    "operation": Command(
        "causeway.cli.operation",
        "operation",
        ("client",),
        "Show the progress of everything that takes long, and what it waits for; cancel it.",
    ),
    "server": Command(
        "causeway.cli.server",
        "server",
        ("client",),
        "`server move explain`: say where a server could be moved to, and why not elsewhere.",
    ),
    "explain": Command("causeway.cli.explain", "explain", ("client",), "Short for `server move explain`."),
    "drain": Command(
        "causeway.cli.drain", "drain", ("client",), "Empty a cell, hosts or a project: planned, explained, paced."
    ),
    "console": Command(
        "causeway.cli.console",
        "console",
        ("client",),
        "Serve a page that shows cells, drains and operations as they change.",
    ),
    "adopt": Command(
        "causeway.cli.adopt",
        "adopt",
        (),
        "Take over a cloud that runs Nova: `adopt check` says of each server and host what would become of it.",
    ),
    "faults": Command("causeway.cli.faults", "faults", ("database",), "Fault injection: lists the points."),
}


# Names that work and are not listed -> the listed ones.
ALIASES = {"move": "operation"}


class LazyGroup(click.Group):
    """Loads a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        cmd_name = ALIASES.get(cmd_name, cmd_name)
        if cmd_name not in COMMANDS:
            return None
        wanted = COMMANDS[cmd_name]
        for extra in wanted.extras:
            extras.require(extra, f"`causeway {cmd_name}`")
        command: click.Command = getattr(importlib.import_module(wanted.module), wanted.function)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help) for name, command in COMMANDS.items()])


@click.group(cls=LazyGroup)
@click.version_option(package_name="causeway")
def cli() -> None:
    """Causeway: a compute control plane for clouds split into cells, made for moving servers."""
