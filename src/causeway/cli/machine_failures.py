"""Says in a sentence what is wrong with the machine on which a command runs: its disks, folders and ports."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from causeway.cli.database_errors import cause_of, database_errors
from causeway.http.server import PortInUse

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_READ_ONLY = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NO_FOLDER = frozenset({errno.ENOTDIR, errno.EEXIST})
# What SQLite says -> what is said of the folder.
_OF_SQLITE = {
    "disk is full": "full",
    "readonly database": "read-only",
    "unable to open database file": "read-only",
    "disk I/O error": "broken",
}


@contextmanager
def reported(folder: Path | None = None, ports: Mapping[int, str] | None = None) -> Iterator[None]:
    """Turns failures of the machine into errors of the command. ``folder``: where it stores everything; ``ports``: number ->
    the option that gives it.
    """
    try:
        yield
    except PortInUse as failure:
        option = (ports or {}).get(failure.port, "--port")
        raise click.ClickException(f"Port {failure.port} is in use; give another {option}.") from failure
    except OSError as failure:
        raise click.ClickException(_of_system(failure, folder)) from failure
    except database_errors() as failure:
        said = str(cause_of(failure) or "")
        what = next((meaning for words, meaning in _OF_SQLITE.items() if words in said), None)
        if what is None or folder is None:
            raise
        raise click.ClickException(_of_folder(what, folder, said)) from failure


def _of_system(failure: OSError, folder: Path | None) -> str:
    named = Path(failure.filename) if isinstance(failure.filename, str) else None
    at, said = named or folder, failure.strerror or str(failure)
    if at is not None and failure.errno in _FULL:
        return _of_folder("full", at, said)
    if at is not None and failure.errno in _READ_ONLY:
        return _of_folder("read-only", at, said)
    if named is not None and failure.errno in _NO_FOLDER:
        return f"{named} is no folder."
    return f"{said}." if named is None else f"{named}: {said}."


def _of_folder(what: str, at: Path, said: str) -> str:
    if what == "full":
        return f"The disk of {at} is full: free some space there, or give another folder."
    if what == "read-only":
        return f"{at} can't be written by this user ({said}): give it the right to, or give another folder."
    return f"{at} can't be used: {said}."
