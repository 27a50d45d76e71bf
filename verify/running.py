"""A part as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from verify.outcomes import ROOT, Kept, Outcome, Status
from verify.parts import Part

# Of the time that a part takes on a quiet machine; a busy one needs some times as long.
PATIENCE = 4
# A shell that starts something in the background lets it ignore Ctrl-C, and so would all that it starts.
INTERRUPTIBLE = ("env", "--default-signal=INT")
# Exit status of a part that needs what is not here; its last line says what.
NOT_RUN = 77
# Seconds between two checks of what a part printed, and for a part to end that was asked to.
LOOK, ENDING = 2.0, 60.0
_STATUSES: dict[int, Status] = {0: "passed", NOT_RUN: "not run"}


def run(
    part: Part, kept: Kept, show: Callable[[str], None], interrupted: Event, *, from_start: bool = False
) -> Outcome:
    """Runs a part to its end. ``show`` gets the last line that it printed, every other second.

    ``from_start``: also a part that could continue from the result of an earlier run. When ``interrupted`` is set, the part is
    ended, and its outcome says so.
    """
    result, log = kept.result(part.title), kept.log(part.title)
    if from_start or not part.resumes:
        result.unlink(missing_ok=True)
    began, clock = datetime.now(UTC), time.monotonic()
    limit = clock + PATIENCE * part.minutes * 60
    status: Status | None = None
    with log.open("wb") as said:
        # A session of its own: all that it started can be ended with it.
        process = subprocess.Popen(
            [*INTERRUPTIBLE, *part.command_to(result)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            while _still_runs(process):
                show(_last_line(log))
                if interrupted.is_set():
                    status = "interrupted"
                    break
                if time.monotonic() > limit:
                    status = "timed out"
                    break
        finally:
            _end(process)
    status = status or _STATUSES.get(process.returncode, "failed")
    outcome = Outcome(
        part.title,
        kept.of.state,
        kept.of.commit,
        status,
        process.returncode,
        began.isoformat(timespec="seconds"),
        round(time.monotonic() - clock, 1),
        str(log.relative_to(ROOT)) if log.is_relative_to(ROOT) else str(log),
    )
    if result.exists() and status in ("passed", "failed"):
        outcome.counts = part.reader(result)
    if status == "not run":
        outcome.reason = _last_line(log)
    kept.save(outcome)
    return outcome


def _still_runs(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(LOOK)
    except subprocess.TimeoutExpired:
        return True
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends all processes of the part: politely, then not."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            break
        os.killpg(process.pid, number)
        try:
            process.wait(ENDING)
        except subprocess.TimeoutExpired:
            continue


def _last_line(log: Path, most: int = 4096) -> str:
    with log.open("rb") as written:
        written.seek(0, os.SEEK_END)
        written.seek(max(0, written.tell() - most))
        lines = written.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
