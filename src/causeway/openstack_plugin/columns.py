"""What commands are made of: their client, and table cells that are plain data for ``-f json`` and words for people."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cliff.columns import FormattableColumn
from osc_lib import exceptions
from osc_lib.command import command

from causeway.openstack_plugin import asking

Entry = Mapping[str, Any]
# (title, what an entry has there)
Columns = Sequence[tuple[str, Callable[[Entry], Any]]]
Rows = tuple[Sequence[str], Iterable[Any]]


class Worded(FormattableColumn):  # type: ignore[type-arg]  # in older releases it has none
    """A value that ``say`` puts into words for people."""

    def __init__(self, value: Any, say: Callable[[Any], str]) -> None:
        super().__init__(value)
        self._say = say

    def human_readable(self) -> str:
        return self._say(self._value)

    def machine_readable(self) -> Any:
        return self._value


class CloudCommand(command.Command):
    """A command that asks our API."""

    @property
    def compute(self) -> Any:
        # The client gives it the plug-in's name.
        return self.app.client_manager.causeway  # type: ignore[attr-defined]

    def note(self, text: str) -> None:
        """Writes to standard error, so that the answer of ``-f json`` stays JSON."""
        self.app.stderr.write(f"{text}\n")


class VerdictCommand(CloudCommand):
    """A command that may succeed and still find that something is wrong: its exit status says so."""

    status = 0

    def run(self, parsed_args: argparse.Namespace) -> int:
        return int(super().run(parsed_args) or self.status)


def rows(columns: Columns, entries: Iterable[Entry]) -> Rows:
    return [title for title, _of in columns], [tuple(of(entry) for _title, of in columns) for entry in entries]


def fields(entry: Entry, said: Mapping[str, Callable[[Any], str]] | None = None) -> Rows:
    """One thing with all its fields. ``said``: field -> what puts it into words for people; nested values are `lines` without."""
    nested = {name: lines for name, value in entry.items() if isinstance(value, Mapping | list)}
    words = nested | dict(said or {})
    return list(entry), [Worded(value, words[name]) if name in words else value for name, value in entry.items()]


def lines(values: Mapping[str, Any] | Sequence[Any]) -> str:
    """Nested values, a line each; empty ones are left out."""
    if isinstance(values, Mapping):
        return "\n".join(f"{name}: {_flat(value)}" for name, value in values.items() if value not in (None, [], {}))
    return "\n".join(_flat(value) for value in values)


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_flat(part)}" for name, part in value.items())
    return ", ".join(map(_flat, value)) if isinstance(value, list) else str(value)


def add_paging(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--limit", metavar="<number>", type=natural, help=f"List so many {what} at most")
    parser.add_argument("--marker", metavar="<id>", help="Begin after this one, the last of what was listed before")


def natural(text: str) -> int:
    """The type of an option: a number that is not negative."""
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def for_each(self: CloudCommand, wanted: Sequence[str], act: Callable[[str], None], what: str) -> None:
    """Calls ``act`` with each, also if it fails for some. Raises CommandError at the end if it failed for any."""
    failures = 0
    for one in wanted:
        try:
            act(one)
        except asking.NotAsked as failure:
            failures += 1
            self.log.error("%s: %s", one, failure)
    if failures:
        raise exceptions.CommandError(f"{failures} of {len(wanted)} {what} failed.")
