"""docs/adopting.md, typed at the lab: its commands as they stand, with the lab's names, paths and addresses for the page's."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from docs.site.stage import ROOT
from tests.functional.processes.deployment import CONDUCTORS
from tests.functional.processes.own_process import CAUSEWAY, Process
from tests.integration.adopt.adopted_cloud import AdoptedCloud
from tests.integration.adopt.commands import causeway
from tests.integration.adopt.nova_cloud import NovaCloud
from tests.unit.docs.examples import NO_COMMANDS, commands

PAGE = ROOT / "docs" / "adopting.md"
# Programs that the page types at hosts.
OF_HOSTS = {"/opt/causeway/bin/causeway", "cp", "install", "systemctl"}
TO_END = 60.0


@dataclass(frozen=True)
class Block:
    """``chapter``: the heading above it; ``number``: which of its blocks, from 0."""

    chapter: str
    number: int
    commands: tuple[tuple[str, ...], ...]


def blocks() -> list[Block]:
    """All blocks of commands, in their order."""
    found: list[Block] = []
    chapter = ""
    for part in re.finditer(r"^#+ ([^\n]*)$|^```(\w*)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        if part[1] is not None:
            chapter = part[1]
        elif part[2] not in NO_COMMANDS:
            number = sum(block.chapter == chapter for block in found)
            found.append(Block(chapter, number, tuple(tuple(words) for words in commands(part[3]))))
    return found


class TypedPage:
    """``said``: what the last command of Causeway's printed.

    What is not as on a machine of its own: systemd's orders start and end the lab's processes (with the words of the unit that
    was made, and never a nova-compute that the fence keeps out); Causeway's state is in the lab's folder, not in /var/lib; its
    control plane has the files of the lab in one.
    """

    def __init__(self, cloud: NovaCloud, adopted: AdoptedCloud) -> None:
        self._cloud, self._adopted = cloud, adopted
        self._blocks = {(block.chapter, block.number): block for block in blocks()}
        self._untyped = dict.fromkeys(self._blocks)
        self.said = ""
        self._write_files()

    @property
    def untyped(self) -> list[tuple[str, int]]:
        """Blocks that nobody has typed: chapter and number."""
        return list(self._untyped)

    def type(
        self, chapter: str, number: int = 0, *, host: str = "", status: int = 0, names: Mapping[str, str] | None = None
    ) -> None:
        """A block, at a host if it is one for hosts. ``names``: more of the page's words -> what they are here.

        ``status``: of each of Causeway's commands in it.
        """
        self._untyped.pop((chapter, number), None)
        for words in self._blocks[chapter, number].commands:
            self._type(words, host, status, names or {})

    def type_with(self, more: str, chapter: str) -> None:
        """The first command of a chapter, with more options, as a sentence of the page says."""
        words = self._blocks[chapter, 0].commands[0]
        assert f"`{' '.join(words[:3])} {more}`" in PAGE.read_text()
        self._type((*words, *more.split()), "", 0, {})

    def is_fenced(self, host: str) -> bool:
        """Whether systemd would not start nova-compute there."""
        fence = self._units(host) / "nova-compute.service.d" / "causeway.conf"
        (marker,) = re.findall(r"^AssertPathExists=!(.*)$", fence.read_text(), re.MULTILINE)
        return Path(marker).exists()

    def _type(self, page_words: Sequence[str], host: str, status: int, names: Mapping[str, str]) -> None:
        program = page_words[0]
        known = self._names_of_host(host) if program in OF_HOSTS else self._names()
        words = [_replaced(word, {**known, **names}) for word in page_words[1:]]
        match program:
            case "causeway" | "/opt/causeway/bin/causeway":
                prefix = self._adopted.prefix(host) if program in OF_HOSTS else ()
                if words[:2] == ["adopt", "host-config"]:
                    words += ["--state-path", str(self._adopted.directory)]
                done = causeway(*words, prefix=prefix)
                self.said = done.stdout
                assert done.returncode == status, f"{words}: {done.returncode}: {done.stdout}{done.stderr}"
            case "cp" | "install":
                subprocess.run([program, *words], check=True, timeout=60)
            case "systemctl":
                self._order(words, host)
            case "rabbitmqctl":
                self._cloud.broker.control(*words)
            case _:
                raise AssertionError(f"Nothing stands for {program} here.")

    def _order(self, words: Sequence[str], host: str) -> None:
        """What systemd would do."""
        match words:
            case ["daemon-reload"]:
                pass
            case ["start" | "enable", *_, "causeway-compute"]:
                self._start_causeway(host)
            case ["disable", "--now", "causeway-compute"]:
                process = self._adopted.processes.pop(host)
                process.terminate()
                assert process.wait_ended(TO_END) == 0
            case ["enable", "--now", "nova-compute"]:
                assert not self.is_fenced(host)
                self._cloud.nova.launch_compute(host)
            case ["disable", "--now", "nova-compute"]:
                self._cloud.nova.stop_compute(host)
            case _:
                raise AssertionError(f"Nothing stands for systemctl {' '.join(words)} here.")

    def _start_causeway(self, host: str) -> None:
        if host in self._adopted.processes:
            return
        unit = (self._units(host) / "causeway-compute.service").read_text()
        (started,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
        program, *words = shlex.split(started)
        assert program == str(CAUSEWAY)
        self._adopted.start_other(host, Process, *words).wait_ready()

    def _units(self, host: str) -> Path:
        return self._adopted.directory / "systemd" / host

    def _root(self, name: str) -> Path:
        return self._adopted.directory / "root" / name

    def _write_files(self) -> None:
        """What the page has the operator write."""
        adopted = self._adopted
        self._root("").mkdir()
        for name, url in adopted.databases.items():
            self._root(f"{name}.url").write_text(f"{url}\n")
        parts = [file.read_text() for file in adopted.files_of(CONDUCTORS[0])]
        self._root("conductor.conf").write_text("\n".join(parts))
        # As in Debian's packages.
        self._root("nova-compute.conf").write_text(
            "[DEFAULT]\ncompute_driver = libvirt.LibvirtDriver\n[libvirt]\nvirt_type = qemu\n"
        )
        for host in adopted.hosts:
            self._units(host).mkdir(parents=True)

    def _names(self) -> dict[str, str]:
        """The page's words for a controller."""
        nova, adopted = self._cloud.nova, self._adopted
        config = nova.config_of("nova")
        return {
            "/etc/nova/nova.conf": str(config),
            "/etc/nova/nova-compute.conf": str(nova.config_of(f"compute-{next(iter(nova.hosts))}")),
            "/etc/nova/policy.yaml": str(config.with_name("policy.yaml")),
            "/etc/nova/policy.d": str(config.with_name("policy.d")),
            "/etc/causeway/conductor.conf": str(self._root("conductor.conf")),
            "/root/cell0.url": str(self._root("cell0.url")),
            "https://compute.example.org:8774": adopted.api_url,
            **self.of_cell("cell1"),
        }

    def of_cell(self, cell: str) -> dict[str, str]:
        """The page's words for cell1."""
        return {
            "cell1": cell,
            "CELL1_UUID": self._adopted.cell_uuids[cell],
            "/root/cell1.url": str(self._root(f"{cell}.url")),
            "/root/cell1.queue": str(self._adopted.queue_file(cell)),
        }

    def _names_of_host(self, host: str) -> dict[str, str]:
        """The page's words for a host."""
        nova = self._cloud.nova
        return {
            "/etc/nova/nova.conf": str(nova.config_of(f"compute-{host}")),
            "/etc/nova/nova-compute.conf": str(self._root("nova-compute.conf")),
            "/etc/causeway": str(self._adopted.etc(host)),
            "/etc/systemd/system": str(self._units(host)),
            "/root/cell1.queue": str(self._adopted.queue_file(nova.hosts[host])),
        }


def _replaced(word: str, names: Mapping[str, str]) -> str:
    """The longest names go first: one may begin as another one does."""
    one = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    done, count = re.subn(one, lambda found: names[found[0]], word)
    assert count or "/" not in word, f"Nothing stands for {word} here."
    return done


__all__ = ["PAGE", "Block", "TypedPage", "blocks"]
