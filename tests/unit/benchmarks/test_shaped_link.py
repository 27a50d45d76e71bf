"""Two namespaces with a link of a given speed, of which nothing is left."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.copying import by_rounds
from benchmarks.shaped_link import SOURCE, TARGET, Link, NoLink, bits_of, shaped_link

ROOT = Path(__file__).parents[3]


def why_not() -> str | None:
    for tool in ("ip", "tc", "unshare", "nsenter"):
        if shutil.which(tool) is None:
            return f"there is no {tool}"
    try:
        with shaped_link("1G"):
            return None
    except NoLink as failure:
        return str(failure)


needs_links = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces are root's")


@pytest.fixture
def _possible() -> None:
    if reason := why_not():
        pytest.skip(reason)


@pytest.fixture
def folder() -> Iterator[Path]:
    """With a short name: sockets are made in it."""
    with tempfile.TemporaryDirectory(prefix="copying-") as name:
        yield Path(name)


def output(words: list[str]) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def namespace(command: list[str]) -> str:
    return output([*command, "readlink", "/proc/self/ns/net"])


def namespaces() -> set[str]:
    """Of every process."""
    found = set()
    for each in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            found.add(f"{each.readlink()}\n")
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("speed", "bits"), [("500M", 500_000_000), ("1G", 10**9), ("10G", 10**10), ("unlimited", None)]
)
def test_speeds_are_bits_a_second(speed: str, bits: int | None) -> None:
    assert bits_of(speed) == bits


@pytest.mark.parametrize("speed", ["", "1", "G", "0G", "-1G", "1T", "1.5G", "1G; reboot"])
def test_what_is_no_speed_is_refused(speed: str) -> None:
    with pytest.raises(ValueError, match="is no speed"):
        bits_of(speed)


def test_headers_leave_less_for_content() -> None:
    content = Link(10**9, [], []).content
    assert content is not None
    assert round(content * 8 / 10**9, 3) == 0.956


@needs_links
@pytest.mark.usefixtures("_possible")
def test_both_ends_are_shaped_and_reach_one_another_and_nothing_else() -> None:
    own = output(["ip", "-brief", "link"])
    with shaped_link("1G") as link:
        assert len({namespace([]), namespace(link.source), namespace(link.target)}) == 3
        for inside, other in ((link.source, TARGET), (link.target, SOURCE)):
            assert " tbf " in (shaping := output([*inside, "tc", "qdisc", "show", "dev", "wire0"]))
            assert "rate 1Gbit" in shaping
            assert f"{other} dev wire0" in output([*inside, "ip", "route", "get", other])
            assert len(output([*inside, "ip", "-brief", "link"]).splitlines()) == 2
        assert output(["ip", "-brief", "link"]) == own


@needs_links
@pytest.mark.usefixtures("_possible")
def test_without_a_limit_nothing_is_shaped() -> None:
    with shaped_link("unlimited") as link:
        assert "tbf" not in output([*link.source, "tc", "qdisc", "show", "dev", "wire0"])


@needs_links
@pytest.mark.usefixtures("_possible")
def test_nothing_is_left_of_a_link_in_which_something_failed() -> None:
    made = set()

    def fail() -> None:
        with shaped_link("1G") as link:
            made.update({namespace(link.source), namespace(link.target)})
            assert made <= namespaces()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not made & namespaces()


PROGRAM = """
import subprocess, sys
from benchmarks.shaped_link import shaped_link

with shaped_link("1G") as link:
    for inside in (link.source, link.target):
        subprocess.run([*inside, "readlink", "/proc/self/ns/net"])
        print(*inside, flush=True)
    sys.stdin.read()
"""


@needs_links
@pytest.mark.usefixtures("_possible")
def test_nothing_is_left_of_a_link_whose_process_was_killed() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}/src"},
    )
    assert process.stdout is not None
    made, holders = set(), []
    for _ in range(2):
        made.add(process.stdout.readline())
        found = re.search(r"/proc/(\d+)/", process.stdout.readline())
        assert found is not None
        holders.append(os.pidfd_open(int(found[1])))
    assert made <= namespaces()
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    for holder in holders:
        assert select.select([holder], [], [], 60)[0], "a namespace is held"
        os.close(holder)
    assert not made & namespaces()


@needs_links
@pytest.mark.skipif(shutil.which("qemu-nbd") is None, reason="qemu-nbd is not installed")
@pytest.mark.usefixtures("_possible")
@pytest.mark.parametrize("tls", [False, True])
def test_a_disk_goes_through_the_link(folder: Path, monkeypatch: pytest.MonkeyPatch, *, tls: bool) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}/src")
    file = folder / "disk"
    file.write_bytes(content := os.urandom(1 << 20))
    with shaped_link("1G") as link:
        by_rounds(file, folder, len(content), 1, link, is_linked=True, tls=tls)
    (copy,) = (folder / "target" / "copies").glob("*/disk")
    read = folder / "read"
    subprocess.run(["qemu-img", "convert", "-f", "qcow2", "-O", "raw", copy, read], check=True)
    assert read.read_bytes() == content
