"""What the lab's files share: network namespaces, their devices, and processes with pid files."""

from __future__ import annotations

import json
from pathlib import Path

from causeway.virt.libvirt.commands import run


def namespaces() -> set[str]:
    """The names of this machine's network namespaces."""
    return {line.split()[0] for line in run("ip", "netns", "list").splitlines() if line}


def ip_batch(lines: list[str], *, namespace: str | None = None) -> None:
    """Runs `ip` commands, one in each line, in a network namespace. Stops at the first that fails."""
    words = ["ip", "-n", namespace] if namespace else ["ip"]
    run(*words, "-batch", "-", stdin="\n".join(lines) + "\n")


def links(namespace: str) -> dict[str, str | None]:
    """Name of each network device in a namespace -> the bridge that it is in."""
    devices = json.loads(run("ip", "-n", namespace, "-json", "link", "show") or "[]")
    return {device["ifname"]: device.get("master") for device in devices}


def process_runs(pid_file: Path, needle: str) -> int | None:
    """The process that a pid file names, if it runs and its command line has ``needle`` (pids are reused)."""
    try:
        pid = int(pid_file.read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return None
    return pid if needle in command else None
