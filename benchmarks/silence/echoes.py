"""Somebody on a guest's network who asks it for echoes all the time: what the guest's silence is measured by."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import click

PROGRAM = Path(__file__).with_name("echo_program.py")
EVERY = 0.05


class Echoes:
    """Answers of a guest, from `__enter__` to `__exit__`. ``inside``: how a command begins that runs where ``own`` address is."""

    def __init__(self, inside: Sequence[str], own: str, address: str) -> None:
        self._command = [*inside, sys.executable, "-I", str(PROGRAM), own, address, str(EVERY)]
        self._address = address
        self._heard: list[float] = []
        self._news = threading.Condition()

    def __enter__(self) -> Echoes:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != "ready":
            self._process.wait()
            raise click.ClickException(f"Nobody can ask {self._address} for echoes.")
        self._reader = threading.Thread(target=self._read, name="echoes", daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(20)
        self._reader.join(20)

    def wait_for(self, after: float, count: int, patience: float) -> None:
        """Until so many answers have come after a moment (of `time.monotonic`)."""
        with self._news:
            if not self._news.wait_for(lambda: sum(at > after for at in self._heard[-count:]) == count, patience):
                raise click.ClickException(f"{self._address} did not answer within {patience:.0f} s.")

    def heard(self) -> list[float]:
        """When answers came (of `time.monotonic`)."""
        with self._news:
            return list(self._heard)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._news:
                self._heard.append(float(line))
                self._news.notify_all()
