"""Two network namespaces, joined by a link of a given speed: the networks of two hosts on one machine.

Nothing is left of them, however a benchmark ends: the namespaces have no names, so they last as long as the two processes that
hold them, which end with this one. (A measured process that outlives them holds its own; `benchmarks.scale.ending` ends those.)
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

SOURCE, TARGET = "198.18.0.1", "198.18.0.2"
_DEVICE = "wire0"
# A frame's headers, and those of IP and TCP in it: what they take of 1,514 bytes carries no content.
_FRAME, _HEADERS = 1514, 66
# What the link lets through at once: some of the 64 KiB that the system hands over together, for a card would divide them.
_BURST, _BURST_SECONDS = 256 << 10, 0.001
# What waits for the link before frames are lost, as in the buffers of a switch.
_QUEUE_SECONDS = 0.01


class NoLink(Exception):
    """There can be none here."""


@dataclass(frozen=True)
class Link:
    """``bits``: a second; None: as fast as this machine is. Commands that begin with ``source`` or ``target`` run there."""

    bits: int | None
    source: list[str]
    target: list[str]

    @property
    def content(self) -> float | None:
        """Bytes of content that fit through it in a second, in frames of the usual size."""
        return self.bits / 8 * (_FRAME - _HEADERS) / _FRAME if self.bits is not None else None


def bits_of(speed: str) -> int | None:
    """``1G`` and ``500M``: bits a second; ``unlimited``: None. Raises ValueError."""
    if speed == "unlimited":
        return None
    found = re.fullmatch(r"([1-9][0-9]*)([MG])", speed)
    if found is None:
        raise ValueError(f"{speed} is no speed such as 500M, 10G or unlimited")
    return int(found[1]) * {"M": 10**6, "G": 10**9}[found[2]]


@contextmanager
def shaped_link(speed: str) -> Iterator[Link]:
    """Raises NoLink if this account or machine can't have one."""
    bits = bits_of(speed)
    with ExitStack() as stack:
        source, target = (stack.enter_context(_namespace()) for _ in range(2))
        _run("ip", "link", "add", _DEVICE, "netns", source, "type", "veth", "peer", "name", _DEVICE, "netns", target)
        for holder, address in ((source, SOURCE), (target, TARGET)):
            inside = _inside(holder)
            _run(*inside, "ip", "link", "set", "lo", "up")
            _run(*inside, "ip", "address", "add", f"{address}/30", "dev", _DEVICE)
            _run(*inside, "ip", "link", "set", _DEVICE, "up")
            if bits is not None:
                _run(*inside, *_shaped(bits))
        yield Link(bits, _inside(source), _inside(target))


@contextmanager
def _namespace() -> Iterator[str]:
    """The id of a process that holds a network namespace."""
    # It says a word once it is inside, and ends with its input, and so with this process.
    command = ["unshare", "--net", "sh", "-c", "echo inside; exec cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stderr is not None
        if not holder.stdout.readline():
            raise NoLink(holder.stderr.read().decode(errors="replace").strip())
        yield str(holder.pid)


def _inside(holder: str) -> list[str]:
    return ["nsenter", f"--net=/proc/{holder}/ns/net"]


def _shaped(bits: int) -> list[str]:
    burst = max(_BURST, int(bits / 8 * _BURST_SECONDS))
    limit = burst + int(bits / 8 * _QUEUE_SECONDS)
    words = ["tc", "qdisc", "add", "dev", _DEVICE, "root", "tbf"]
    return [*words, "rate", f"{bits}bit", "burst", str(burst), "limit", str(limit)]


def _run(*words: str) -> None:
    try:
        subprocess.run(words, check=True, capture_output=True, text=True)
    except FileNotFoundError as failure:
        raise NoLink(str(failure)) from failure
    except subprocess.CalledProcessError as failure:
        raise NoLink(f"{' '.join(words)}: {failure.stderr.strip()}") from failure
