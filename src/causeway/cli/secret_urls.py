"""URLs with passwords as options of commands: given in a file or by standard input, as other users see the arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TextIO, TypeVar
from urllib.parse import urlsplit

import click

F = TypeVar("F", bound=Callable[..., Any])


def url_option(name: str, what: str) -> Callable[[F], F]:
    """Two options for one URL: ``NAME URL``, as in Nova, and ``NAME-file PATH``. The command gets the URL as one."""
    dest = name.removeprefix("--").replace("-", "_")

    def add(command: F) -> F:
        @wraps(command)
        def with_url(*arguments: Any, **options: Any) -> Any:
            file: TextIO | None = options.pop(f"{dest}_file")
            options[dest] = _url(name, options[dest], file)
            return command(*arguments, **options)

        decorated = click.option(
            f"{name}-file",
            type=click.File("r"),
            help=f"A file with the URL, or - for standard input. {what}",
        )(with_url)
        return click.option(
            name, help="The URL itself. Every user of this machine sees it and its password while the command runs."
        )(decorated)  # type: ignore[return-value]

    return add


def _url(name: str, given: str | None, file: TextIO | None) -> str | None:
    if file is None:
        if given is not None and _has_password(given):
            click.echo(
                f"Warning: users of this machine can see the password in {name}. Use {name}-file and change it.",
                err=True,
            )
        return given
    if given is not None:
        raise click.UsageError(f"Give {name} or {name}-file, not both.")
    # One line of standard input, so that two URLs may come through it.
    lines = (line.strip() for line in iter(file.readline, ""))
    found = next((line for line in lines if line and not line.startswith("#")), None)
    if found is None:
        raise click.UsageError(f"{name}-file {file.name} is empty: one line with the URL is expected.")
    return found


def _has_password(url: str) -> bool:
    try:
        place = urlsplit(url).netloc
    except ValueError:
        return True
    return any(":" in each.rpartition("@")[0] for each in place.split(","))


__all__ = ["url_option"]
