"""The commands in the documents' code blocks, taken apart as a shell would, and held against the programs that they call."""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points, metadata
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import click

from causeway.cli.main import cli
from docs.site.stage import ROOT, pages

# Blocks of these languages, and those that begin so, are no commands.
NO_COMMANDS = {"ini", "yaml", "mermaid", "python"}
NO_COMMANDS_BEGIN = re.compile(
    r"\s*(\[|openstack client, SDK|openstack CLI, SDK|src/causeway/\n|proposed |resize\.Finish|- \{service:)"
)
# Blocks that a test runs as they stand: page and language.
RUN = {"docs/draining.md sh"}
# Not run and not checked here: program -> why.
OTHERS = {
    "export": "the shell's",
    ".": "the shell's",
    "cd": "the shell's",
    "echo": "the shell's",
    "for": "the shell's",
    "done": "the shell's",
    "cat": "writes a configuration, which test_deployed_configuration and the tests of processes have as files of their own",
    "cp": "installs files of deploy/, which must be there",
    "chgrp": "works on an installed machine",
    "printf": "the shell's",
    "openssl": "signs what a proxy would",
    "cut": "a part of a line of openssl",
    "chmod": "works on an installed machine",
    "install": "works on an installed machine",
    "git": "fetches this repository from where the reader has it",
    "pip": "asks a package index; the extras that it names must be there",
    "python3": "makes the reader's environment",
    "apt-get": "installs packages of Debian",
    "useradd": "works on an installed machine",
    "ln": "works on an installed machine",
    "grep": "reads a log of a running cloud",
    "sqlite3": "needs databases of a stopped cloud",
    "virsh": "needs a guest that runs twice",
    "ip": "needs the lab of real guests (root)",
    "curl": "asks a service whose address the reader knows",
    "sed": "works on an installed machine",
    "rabbitmqctl": "needs a message broker; the tests of processes make their own virtual hosts",
    "createdb": "needs a database server",
    "psql": "needs a database server",
    "placement-manage": "needs a database server; devcloud and the real services make Placement's so",
    "gunicorn": "serves until it is stopped; the real services' Placement is served so",
    "systemctl": "needs the machine's own service manager",
    "ceph": "needs a Ceph and its administrator's key",
    "rbd": "needs a Ceph and its administrator's key",
    ".ci/run": "is what continuous integration runs",
}
_REDIRECTION = re.compile(r"^\d?(>>?|<)&?\S*$")
_HEREDOC = re.compile(r"<<'?(\w+)'?\n.*?^\1$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    """One command of a block. ``where``: the page and the line at which its block begins."""

    where: str
    words: tuple[str, ...]

    @property
    def program(self) -> str:
        return self.words[0] if self.words[0].startswith(".") else Path(self.words[0]).name


def examples() -> Iterator[Example]:
    """Every command of every block that has commands."""
    for page in pages():
        text = page.read_text()
        for block in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            if (
                f"{page.relative_to(ROOT)} {block[1]}" in RUN
                or block[1] in NO_COMMANDS
                or NO_COMMANDS_BEGIN.match(block[2])
            ):
                continue
            where = f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, block.start()) + 1}"
            for words in commands(block[2]):
                yield Example(where, tuple(words))


def python_blocks() -> Iterator[tuple[str, str]]:
    """Every block of Python, with its page."""
    for page in pages():
        for block in re.finditer(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
            yield str(page.relative_to(ROOT)), block[1]


def commands(script: str) -> Iterator[list[str]]:
    """The commands of a script, each as its words: without comments, redirections, assignments and the shell's own words.

    A variable of a loop has its first value.
    """
    script = _HEREDOC.sub("", script.replace("\\\n", " "))
    for name, value in re.findall(r"\bfor (\w+) in (\w+)", script):
        script = re.sub(rf"\$\{{?{name}\b\}}?", value, script)
    while found := re.search(r"\$\(([^()]*)\)", script):
        yield from commands(found[1])
        script = script.replace(found[0], "SUBSTITUTED")
    for line in script.splitlines():
        split = shlex.shlex(line, posix=True, punctuation_chars=";&|")
        split.whitespace_split, split.commenters = True, "#"
        for is_end, group in itertools.groupby(split, lambda word: bool(re.fullmatch(r"[;&|]+", word))):
            words = [] if is_end else [word for word in group if not _REDIRECTION.match(word)]
            while words and (words[0] in ("do", "then", "else") or re.match(r"^\w+=", words[0])):
                words = words[1:]
            if words[:2] == ["sudo", "-u"]:
                words = words[3:]
            if words:
                yield words


def check(example: Example) -> None:
    """Raises AssertionError, click's UsageError or ValueError if the command can't be typed like this."""
    program, words = example.program.removeprefix(".venv/bin/"), list(example.words[1:])
    if program == "causeway":
        _check_click(cli, "causeway", words)
    elif program == "openstack":
        _check_openstack(words)
    elif program == "make":
        targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        assert {word for word in words if "=" not in word} <= targets, "there is no such target"
    elif program == "python" and words[:1] == ["-m"]:
        assert importlib.util.find_spec(words[1]) is not None, "there is no such module"
    else:
        assert program in OTHERS, "nothing checks this program: see OTHERS"
        if program == "cp":
            _check_files(words)
        elif program == "pip":
            named = {extra for word in words for found in re.findall(r"\[(.*)\]", word) for extra in found.split(",")}
            assert named <= set(metadata("causeway").get_all("Provides-Extra") or ()), "there is no such extra"


def _check_click(command: click.Command, name: str, words: list[str], parent: click.Context | None = None) -> None:
    context = click.Context(command, info_name=name, parent=parent)
    _values, rest, _order = command.make_parser(context).parse_args(list(words))
    if isinstance(command, click.Group):
        if not rest:
            return
        inner = command.get_command(context, rest[0])
        assert inner is not None, f"{name} has no command {rest[0]}"
        _check_click(inner, rest[0], rest[1:], context)


@cache
def _openstack_commands() -> dict[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for group in sorted(entry_points().groups):
        if re.match(
            r"openstack\.(common|causeway|compute|identity\.v3|image\.v2|network\.v2$|placement|volume\.v3)", group
        ):
            found |= {each.name.replace("_", " "): each for each in entry_points(group=group)}
    return found


def _check_openstack(words: list[str]) -> None:
    while words and words[0].startswith("-"):
        assert words[0].startswith(("--os-", "--debug")), f"{words[0]} stands before the command"
        words = words[2:]
    known = _openstack_commands()
    length = next((size for size in range(len(words), 0, -1) if " ".join(words[:size]) in known), 0)
    assert length, "the openstack client has no such command"
    name = " ".join(words[:length])
    parser: argparse.ArgumentParser = (
        known[name].load()(MagicMock(), argparse.Namespace(), cmd_name=name).get_parser(name)
    )
    parser.error = _refuse  # type: ignore[method-assign]
    parser.parse_args([re.sub(r"^[A-Z_]{2,}$|\$\w+", "1", word) for word in words[length:]])


def _refuse(message: str) -> Any:
    raise ValueError(message)


def _check_files(words: list[str]) -> None:
    for word in words:
        if word.startswith("deploy/"):
            found = re.fullmatch(r"(.*)\{(.*)\}(.*)", word)
            names = [f"{found[1]}{each}{found[3]}" for each in found[2].split(",")] if found else [word]
            assert all(list(ROOT.glob(name)) for name in names), f"{word} is not there"
