"""Runs programs of the host."""

from __future__ import annotations

import subprocess
from pathlib import Path

from causeway.errors import GuestFailed

_TIMEOUT = 30.0


def run(
    *command: str | Path,
    stdin: str | None = None,
    timeout: float = _TIMEOUT,
    cwd: Path | None = None,
    accept: tuple[int, ...] = (0,),
    name: str = "",
    pass_fds: tuple[int, ...] = (),
) -> str:
    """Runs a program and returns what it wrote to its standard output. ``timeout``: seconds.

    ``name``: what errors call it, if the first word is a program that runs it. ``pass_fds``: open files that it has, too.

    Raises `GuestFailed` if the program is missing, takes longer, or ends with a code that is not in ``accept``.
    """
    words = [str(word) for word in command]
    name = name or words[0]
    try:
        done = subprocess.run(
            words,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            errors="replace",
            cwd=cwd,
            pass_fds=pass_fds,
        )
    except FileNotFoundError as error:
        raise GuestFailed(f"'{words[0]}' is not installed on the host.", details=" ".join(words)) from error
    except subprocess.TimeoutExpired as error:
        raise GuestFailed(f"'{name}' did not end within {timeout:.0f} s.", details=" ".join(words)) from error
    if done.returncode not in accept:
        reason = (done.stderr or done.stdout).strip()
        raise GuestFailed(f"'{name}' failed.", details=f"{' '.join(words)}: {reason[-2000:] or done.returncode}")
    return done.stdout
