"""``causeway``: the one command, with a subcommand for each thing one does with a cloud."""

from __future__ import annotations

import importlib
import warnings

import click

# oslo.messaging imports Eventlet, which warns of itself; nothing here uses it.
warnings.filterwarnings("ignore", message="(?s).*Eventlet is deprecated")

# command -> (module, function, help): a command's module is only loaded when it is used.
COMMANDS = {
    "up": ("causeway.cli.embedded.up", "up", "Run a whole cloud in this process, on embedded parts."),
    "api": ("causeway.cli.web", "api", "Run the Compute API in processes of its own."),
    "metadata": ("causeway.cli.web", "metadata", "Run the metadata service in processes of its own."),
    "conductor": ("causeway.cli.conductor", "conductor", "Run a conductor in a process of its own."),
    "scheduler": ("causeway.cli.scheduler", "scheduler", "Run a scheduler in a process of its own."),
    "compute": ("causeway.cli.compute", "compute", "Run the compute service of one host in a process of its own."),
    "console-proxy": (
        "causeway.cli.console_proxy",
        "console_proxy",
        "Run a proxy of consoles in a process of its own.",
    ),
    "devcloud": (
        "causeway.cli.embedded.devcloud",
        "devcloud",
        "Run small stand-ins for the services around, and Placement.",
    ),
    "manage": ("causeway.cli.manage", "manage", "Databases and cells of a cloud of many processes."),
    "audit": (
        "causeway.cli.audit",
        "audit",
        "Short for `cloud audit`: compare everything that knows of servers; fix what is safe.",
    ),
    "cloud": (
        "causeway.cli.cloud",
        "cloud",
        "`cloud audit`: compare everything that knows of servers; fix what is safe.",
    ),
    "operation": (
        "causeway.cli.operation",
        "operation",
        "Show the progress of everything that takes long, and what it waits for; cancel it.",
    ),
    "move": ("causeway.cli.move", "move", "The same for moves of servers only."),
    "server": (
        "causeway.cli.server",
        "server",
        "`server move explain`: say where a server could be moved to, and why not elsewhere.",
    ),
    "explain": ("causeway.cli.explain", "explain", "Short for `server move explain`."),
    "drain": ("causeway.cli.drain", "drain", "Empty a cell, hosts or a project: planned, explained, paced."),
    "console": (
        "causeway.cli.console",
        "console",
        "Serve a page that shows cells, drains and operations as they change.",
    ),
    "faults": ("causeway.cli.faults", "faults", "Fault injection: lists the points."),
}


class LazyGroup(click.Group):
    """Loads a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, function, _help = COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), function)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_module, _function, text) in COMMANDS.items()])


@click.group(cls=LazyGroup)
@click.version_option(package_name="causeway")
def cli() -> None:
    """Causeway: a compute control plane for clouds split into cells, made for moving servers."""
