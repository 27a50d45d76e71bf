"""Runs the ``openstack`` client, as a user would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from causeway.cli.demo.screen import Screen

USER, ADMIN = "causeway", "causeway-admin"
TIMEOUT = 180.0


class CommandFailed(Exception):
    """A command ended with an error; the message has what it said."""


@dataclass(frozen=True)
class Client:
    """``openstack`` from this virtual environment, with the cloud's clouds.yaml."""

    screen: Screen
    clouds: Path

    def run(self, *words: str, cloud: str = USER) -> str:
        """Prints the command, runs it and returns what it wrote. Raises `CommandFailed`."""
        chosen = [] if cloud == USER else ["--os-cloud", cloud]
        shown = ["openstack", *chosen, *words]
        self.screen.command(shown)
        return execute(shown, self.screen, os.environ | {"OS_CLIENT_CONFIG_FILE": str(self.clouds), "OS_CLOUD": USER})

    def json(self, *words: str, cloud: str = USER) -> Any:
        """`run` for commands whose answer is parsed."""
        return json.loads(self.run(*words, "-f", "json", cloud=cloud))


def execute(words: list[str], screen: Screen, environment: dict[str, str]) -> str:
    """Runs a program that is beside this interpreter. Raises `CommandFailed`."""
    program = Path(sys.executable).parent / words[0]
    try:
        with screen.working(" ".join(words[:4])) if screen.console.is_terminal else nullcontext():
            done = subprocess.run(
                [str(program), *words[1:]],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
            )
    except FileNotFoundError as failure:
        raise CommandFailed(f"There is no {program}: run 'make install'.") from failure
    except subprocess.TimeoutExpired as failure:
        raise CommandFailed(f"{' '.join(words)} did not end within {TIMEOUT:.0f} s.") from failure
    if done.returncode != 0:
        raise CommandFailed(f"{' '.join(words)} ended with {done.returncode}: {done.stderr.strip()[-1500:]}")
    return done.stdout
