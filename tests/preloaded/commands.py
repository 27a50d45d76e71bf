"""Starts commands in processes that have what they import already.

program = Program(Path(sys.executable).with_name("openstack"), "openstackclient.shell")
with program.started("server", "list", environment=os.environ | {"OS_CLOUD": "admin"}) as command:
    written, said = command.communicate(timeout=60)
assert command.returncode == 0
program.stop()
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

_SERVER = Path(__file__).with_name("server.py")
_PATIENCE = 20


class ServerDiedError(Exception):
    """The process that runs the commands has ended: nothing is known of the command."""


class Program:
    """A script in Python. The first command starts the process that has imported everything; `stop` ends it.

    ``module``: what the script imports. ``groups``: a pattern of groups of entry points that are imported as well.
    """

    def __init__(self, script: Path, module: str, groups: str = "") -> None:
        self._script = script
        self._arguments = (module, groups)
        self._server: _Server | None = None

    def started(self, *words: str, environment: Mapping[str, str], folder: Path | None = None) -> Command:
        """The program runs with these arguments. ``environment``: all that it has. ``folder``: if not this process's."""
        if self._server is None:
            self._server = _Server(*self._arguments)
        return Command(
            self._server,
            {
                "words": [str(self._script), *words],
                "environment": dict(environment),
                "folder": str(folder or Path.cwd()),
            },
        )

    def stop(self) -> None:
        """Ends the process and all commands. The next command starts another one."""
        if self._server is not None:
            self._server.stop()
        self._server = None


class _Server:
    def __init__(self, *arguments: str) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 `stop` closes it
        with theirs:
            self.process = subprocess.Popen(
                # Without -P, this file's folder would be where modules are looked for first.
                [sys.executable, "-P", _SERVER, str(theirs.fileno()), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._said,
                pass_fds=[theirs.fileno()],
                # An interrupt of the terminal is the test run's: it ends, and so does the server.
                start_new_session=True,
            )

    def send(self, request: dict[str, object], files: list[int]) -> None:
        try:
            socket.send_fds(self._requests, [json.dumps(request).encode()], files)
        except ConnectionError as error:
            raise self.died() from error

    def died(self) -> ServerDiedError:
        """The error that says how it ended."""
        status = self.process.wait(_PATIENCE)
        self._said.seek(0)
        return ServerDiedError(f"{_SERVER.name} ended with status {status}: {self._said.read()}")

    def stop(self) -> None:
        self._requests.close()
        try:
            self.process.wait(_PATIENCE)
        finally:
            self.process.kill()
            self._said.close()


class Command:
    """One that has been started; used as a `subprocess.Popen` with pipes for what it writes and nothing to read."""

    def __init__(self, server: _Server, request: dict[str, object]) -> None:
        self._server = server
        self._words = request["words"]
        self._line, line = socket.socketpair()
        (output, written), (errors, said) = os.pipe(), os.pipe()
        self.stdout: IO[str] = os.fdopen(output)
        self.stderr: IO[str] = os.fdopen(errors)
        self.returncode: int | None = None
        try:
            server.send(request, [written, said, line.fileno()])
        except Exception:
            self.close()
            raise
        finally:
            line.close()
            os.close(written)
            os.close(said)

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def communicate(self, timeout: float) -> tuple[str, str]:
        """What it still writes until its end, to both. Raises `subprocess.TimeoutExpired` after ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        found: dict[object, bytes] = {self.stdout: b"", self.stderr: b""}
        with selectors.DefaultSelector() as ready:
            for end in (self.stdout, self.stderr, self._line):
                ready.register(end, selectors.EVENT_READ)
            while ready.get_map():
                keys = ready.select(max(0, deadline - time.monotonic()))
                if not keys:
                    raise subprocess.TimeoutExpired(str(self._words), timeout, *found.values())
                for key, _events in keys:
                    data = os.read(key.fd, 1 << 16)
                    if key.fileobj is self._line:
                        if not data:
                            raise self._server.died()
                        self.returncode = int(data)
                        ready.unregister(self._line)
                    elif data:
                        found[key.fileobj] += data
                    else:
                        ready.unregister(key.fileobj)
        self.close()
        written, said = (data.decode() for data in found.values())
        return written, said

    def kill(self) -> None:
        """Has the server kill it, if it runs."""
        self._line.close()

    def close(self) -> None:
        """Kills it, and closes what it writes to."""
        self.kill()
        self.stdout.close()
        self.stderr.close()
