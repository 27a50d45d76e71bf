"""A serial console, used as its owner uses it: commands are typed, and what the guest writes is read."""

from __future__ import annotations

import time
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Self

from causeway.cli.demo.watch import Timeout

# Seconds: of one read, and until a guest that boots answers.
READ, ANSWER = 5.0, 120.0


def can_type() -> bool:
    """Whether a WebSocket client is installed here."""
    return find_spec("websocket") is not None


class SerialConsole:
    """An open console of a guest of the demonstration, which has a shell there without a prompt."""

    def __init__(self, url: str) -> None:
        import websocket

        self._silence: type[Exception] = websocket.WebSocketTimeoutException
        self._socket: Any = websocket.create_connection(url, timeout=READ)
        self._commands = 0
        # Before a shell answers, some or all of what is typed is lost.
        self._type_until_answered("\r")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def do(self, command: str) -> bool:
        """Types a command and returns whether it succeeded. It must be one that may be repeated. Raises `Timeout`."""
        return self._type_until_answered(f"{command} && ")

    def _type_until_answered(self, typed: str) -> bool:
        self._commands += 1
        # The guest echoes what is typed: only an answer of the shell has the number without brackets.
        line = f"{typed}echo DONE-$(({self._commands}+0)) || echo FAILED-$(({self._commands}+0))\r"
        done, failed = f"DONE-{self._commands}".encode(), f"FAILED-{self._commands}".encode()
        deadline, heard = time.monotonic() + ANSWER, b""
        while time.monotonic() < deadline:
            self._socket.send_binary(line.encode())
            quiet_at = time.monotonic() + READ
            try:
                while time.monotonic() < quiet_at:
                    heard += self._socket.recv()
                    if done in heard or failed in heard:
                        return done in heard
            except self._silence:
                continue
        raise Timeout(f"No shell answered at the console within {ANSWER:.0f} s. It was typed: {line.strip()}")
