"""Profiles of processes while something is measured, with py-spy: which Python code holds the interpreter, not who waits."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.scale.deployment import Deployment


class Profiler:
    """``folder`` None: does nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._spy = shutil.which("py-spy")
        if folder is not None:
            if self._spy is None:
                raise SystemExit("--profile needs py-spy on the PATH (pip install py-spy)")
            folder.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def during(self, deployment: Deployment, what: str, *names: str) -> Iterator[None]:
        """Leaves FOLDER/WHAT-NAME.raw (stacks) and .txt (functions, by samples in them and below them)."""
        if self._folder is None:
            yield
            return
        spies = {}
        for name in names:
            if name in deployment.processes:
                path = self._folder / f"{what} {name}.raw".replace(" ", "-")
                command = [
                    str(self._spy),
                    "record",
                    "--gil",
                    "--subprocesses",
                    "-r",
                    "50",
                    "-f",
                    "raw",
                    "-d",
                    "3600",
                    "-o",
                    str(path),
                ]
                spies[path] = subprocess.Popen(
                    [*command, "-p", str(deployment.processes[name].pid)],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
        try:
            yield
        finally:
            for path, spy in spies.items():
                spy.send_signal(signal.SIGINT)
                spy.wait(60)
                if path.exists():
                    path.with_suffix(".txt").write_text(summary(path.read_text()))


def summary(raw: str, most: int = 60) -> str:
    """By function: samples with it on the stack, and on its top."""
    below, top, whole = Counter[str](), Counter[str](), 0
    for line in raw.splitlines():
        stack, _space, number = line.rpartition(" ")
        frames = [frame.rpartition(":")[0] for frame in stack.split(";")]
        whole += int(number)
        top[frames[-1]] += int(number)
        for frame in set(frames):
            below[frame] += int(number)
    lines = [f"{whole} samples"]
    for title, counts in (("with all they call", below), ("themselves", top)):
        lines.append(f"\n{title}:")
        lines += [f"{100 * number / max(whole, 1):6.1f} %  {frame}" for frame, number in counts.most_common(most)]
    return "\n".join(lines) + "\n"
