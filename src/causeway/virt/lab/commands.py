"""Running the system's tools."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from causeway.errors import GuestFailed

_TIMEOUT = 30.0


def run(*command: str | Path, stdin: str | None = None, timeout: float = _TIMEOUT) -> str:
    """What the command wrote to its output. Raises `GuestFailed` if it fails, hangs or is missing."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, input=stdin, capture_output=True, text=True, timeout=timeout, errors="replace")
    except FileNotFoundError as error:
        raise GuestFailed(f"'{words[0]}' is not installed; run scripts/install-packages.sh.") from error
    except subprocess.TimeoutExpired as error:
        raise GuestFailed(f"'{words[0]}' did not end within {timeout:.0f} s.", details=" ".join(words)) from error
    if done.returncode:
        raise GuestFailed(
            f"'{words[0]}' failed: {done.stderr.strip()[-300:] or done.returncode}", details=" ".join(words)
        )
    return done.stdout


def namespaces() -> set[str]:
    """Names of the network namespaces of this machine."""
    return {line.split()[0] for line in run("ip", "netns", "list").splitlines() if line}


def ip_batch(lines: list[str], *, namespace: str | None = None) -> None:
    """Runs `ip` commands, one a line, in a network namespace; stops at the first that fails."""
    words = ["ip", "-n", namespace] if namespace else ["ip"]
    run(*words, "-batch", "-", stdin="\n".join(lines) + "\n")


def links(namespace: str) -> dict[str, str | None]:
    """Name of each network device -> the bridge that it is in."""
    devices = json.loads(run("ip", "-n", namespace, "-json", "link", "show") or "[]")
    return {device["ifname"]: device.get("master") for device in devices}


def process_runs(pid_file: Path, needle: str) -> int | None:
    """The process that a pid file names, if it runs and its command line has ``needle`` (pids are used again)."""
    try:
        pid = int(pid_file.read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return None
    return pid if needle in command else None
