"""A guest's TCP session with somebody outside: it shows whether a guest continues, starts anew or loses something on its way.

The guest says over one connection, five times a second, who it is (an id that it makes when it boots) and how far it has counted;
it counts once a second on its disk and its console, too.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

LISTENER = Path(__file__).with_name("session_listener.py")
PORT = 7000
_SCRIPT = """\
#!/bin/sh
id=$(cat /proc/sys/kernel/random/uuid)
(until n=0 && while sleep 0.2; do n=$((n + 1)); echo "$id $n"; done | nc {address} {port}; do sleep 1; done) &
: > /disk/ticks
(n=0; while sleep 1; do
    n=$((n + 1))
    echo "$n" >> /disk/ticks
    sync
    echo "TICK id=$id n=$n lines=$(grep -c . /disk/ticks)" > /dev/console
done) &
"""


def script(address: str) -> str:
    """The user data of a guest that opens a session to an address when it boots."""
    return _SCRIPT.format(address=address, port=PORT)


@dataclass(frozen=True)
class Word:
    """``connection``: a number for each that was accepted; ``boot``: the guest's id; ``at``: of `time.monotonic`."""

    at: float
    connection: int
    boot: str
    count: int


class Sessions:
    """Whom guests call, from `__enter__` to `__exit__`. ``inside``: how a command begins that runs where they reach it."""

    def __init__(self, inside: Sequence[str]) -> None:
        self._inside = inside
        self._words: list[Word] = []
        self._news = threading.Condition()

    def __enter__(self) -> Sessions:
        self._process = subprocess.Popen(
            [*self._inside, sys.executable, "-I", str(LISTENER), str(PORT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == "ready"
        self._reader = threading.Thread(target=self._read, name="sessions", daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(20)
        self._reader.join(20)

    def word(self, after: float, patience: float = 240.0) -> Word:
        """The first one that was heard after a moment."""
        with self._news:
            heard = self._news.wait_for(lambda: any(word.at > after for word in self._words[-1:]), patience)
            assert heard, f"nothing was heard for {time.monotonic() - after:.0f} s; before: {self._words[-1:]}"
            return next(word for word in self._words if word.at > after)

    def words(self) -> list[Word]:
        with self._news:
            return list(self._words)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            at, connection, boot, count = line.split()
            with self._news:
                self._words.append(Word(float(at), int(connection), boot, int(count)))
                self._news.notify_all()
