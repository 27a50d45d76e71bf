"""Imports what a program needs, and then forks itself for each command: the child becomes the program, as if it had just started.

Usage: ``python -P server.py SOCKET MODULE GROUPS``. SOCKET is the number of an open socket (SOCK_SEQPACKET), MODULE what to
import, GROUPS a pattern: all entry points of the groups that it matches are imported too.

A request is JSON with the keys of `Command`, and three files: standard output, standard error, and the command's line, a
socket. The server writes the exit status to the line, and kills the command if the other end of the line is closed. When the
other end of SOCKET is closed, the server kills all commands and ends. A test run that dies closes it, too.

It has no threads, and imports nothing else of the tests, so that the child has nothing but what the program itself would have.
Warnings that the imports write go to the server's standard error, not to a command's: a test of them starts the program itself.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import re
import runpy
import selectors
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

# Bytes: a command line with its environment.
LONGEST = 1 << 18


@dataclass(frozen=True)
class Command:
    """``words[0]`` is the path of the program, a script in Python; ``environment`` is all that it has."""

    words: list[str]
    environment: dict[str, str]
    folder: str

    def run(self, output: int, errors: int) -> None:
        """Makes this process the program's. Returns or raises what the program does."""
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)
        for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), output, errors)):
            os.dup2(file, number)
            os.close(file)
        sys.argv = list(self.words)
        sys.path.insert(0, str(Path(self.words[0]).parent))
        runpy.run_path(self.words[0], run_name="__main__")


@dataclass(frozen=True)
class Child:
    """A command that runs. ``handle``: it can be read when the command has ended."""

    handle: int
    process: int
    line: socket.socket

    def kill(self) -> None:
        signal.pidfd_send_signal(self.handle, signal.SIGKILL)

    def report(self) -> None:
        status = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        with suppress(OSError):  # the caller no longer wants to know
            self.line.send(str(status).encode())

    def close(self) -> None:
        self.line.close()
        os.close(self.handle)


def preload(module: str, groups: str) -> None:
    importlib.import_module(module)
    points = [point for package in metadata.distributions() for point in package.entry_points]
    for name in {point.module for point in points if re.fullmatch(groups, point.group)}:
        # What can't be imported here can't be imported by the command either, which says so if it matters.
        with suppress(Exception):
            importlib.import_module(name)
    # Else each child would look at all of it again, and copy its memory, when its garbage is collected at its end.
    gc.collect()
    gc.freeze()


def serve(requests: socket.socket) -> tuple[Command, int, int] | None:
    """Forks for each request. Returns the command and its files in the child, and None in the server, at its end."""
    children: dict[int, Child] = {}
    with selectors.DefaultSelector() as ready:
        ready.register(requests, selectors.EVENT_READ)
        while True:
            # One at a time: what is done for one may close another.
            (key, _events), *_others = ready.select()
            child: Child | None = key.data
            if child is None:
                message, files, _flags, _address = socket.recv_fds(requests, LONGEST, 3)
                if not message:
                    break
                output, errors, line = files
                process = os.fork()
                if process == 0:
                    os.close(line)
                    for child in children.values():
                        child.close()
                    return Command(**json.loads(message)), output, errors
                os.close(output)
                os.close(errors)
                child = Child(os.pidfd_open(process), process, socket.socket(fileno=line))
                children[process] = child
                ready.register(child.handle, selectors.EVENT_READ, child)
                ready.register(child.line, selectors.EVENT_READ, child)
            elif key.fileobj is child.line:
                ready.unregister(child.line)
                child.kill()
            else:
                child.report()
                for end in (child.handle, child.line):
                    if end in ready.get_map():
                        ready.unregister(end)
                child.close()
                del children[child.process]
    for child in children.values():
        child.kill()
        child.report()
        child.close()
    return None


def main(number: str, module: str, groups: str) -> None:
    with socket.socket(fileno=int(number)) as requests:
        os.set_inheritable(requests.fileno(), False)
        preload(module, groups)
        found = serve(requests)
    if found is not None:
        command, output, errors = found
        command.run(output, errors)


if __name__ == "__main__":
    main(*sys.argv[1:])
