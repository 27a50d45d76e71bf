"""The group of commands, and what its commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
import msgspec

from causeway.cli import ask
from causeway.model.drains import ARRIVED, DrainProgress
from causeway.openstack_plugin import words

PATH = "/os-causeway/drains"
# Planning thousands of servers takes its time.
PLAN_TIMEOUT = 600.0

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group()
def drain() -> None:
    """Empty a cell, hosts or a project: planned, explained, paced."""


def of_a_cloud(command: Command) -> Command:
    """Adds the options that say which cloud is asked."""
    for option in (ask.timeout_option, ask.os_cloud_option, ask.state_dir_option):
        command = option(command)
    return command


def of_one_drain(command: Command) -> Command:
    return click.argument("wanted", metavar="DRAIN")(of_a_cloud(command))


def path_of(connection: Any, wanted: str, timeout: float) -> str:
    """The path of the drain with this id or name."""
    return f"{PATH}/{ask.id_of(connection, PATH, 'drains', wanted, timeout)}"


def progress_of(shown: Mapping[str, Any]) -> DrainProgress:
    return msgspec.convert(shown["progress"], DrainProgress)


def counts(progress: DrainProgress) -> tuple[int, int]:
    """How many servers have arrived, and how many there are."""
    return sum(count for state, count in progress.servers.items() if state in ARRIVED), sum(progress.servers.values())


def sentence(shown: Mapping[str, Any]) -> str:
    """A drain's state and progress in words, and why it waits."""
    arrived, total = counts(progress_of(shown))
    end = words.end_of_drain(shown)
    said = (
        f'Drain {shown["id"]} "{shown["name"]}" is {shown["state"].replace("_", " ")}:'
        f" {arrived} of {total} servers have arrived{f'; {end}' if end else ''}."
    )
    return f"{said} {shown['note']}" if shown["note"] else said
