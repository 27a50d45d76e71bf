"""The extras of this package: what each brings, and what is said where one is needed and not installed.

`causeway.cli.main` has the table of commands, each with the extra that it needs. A command that needs another one for some of
what it does asks here before it does that.
"""

from __future__ import annotations

from importlib.util import find_spec

import click

#: extra -> the modules by which it is known that it is installed, all of which it brings
MODULES = {
    "api": (
        "falcon",
        "gunicorn",
        "jsonschema",
        "jsonschema_rs",
        "microversion_parse",
        "oslo_limit",
        "dateutil",
        "sqlalchemy",
    ),
    "client": ("falcon", "jinja2", "openstack", "platformdirs", "rich"),
    "console-proxy": ("websockify", "sqlalchemy"),
    "database": ("alembic", "re2", "sqlalchemy"),
    "embedded": ("causeway.embedded", "oslo_db", "placement"),
    "libvirt": ("libvirt", "os_brick", "os_vif"),
}
# What is said of extras that are rarely the ones to install.
_BETTER = {"database": "'causeway[postgresql]' or 'causeway[mysql]', as its database is"}


def missing(extra: str) -> list[str]:
    """The modules of an extra that are not installed here."""
    return [name for name in MODULES[extra] if not _is_there(name)]


def require(extra: str, what: str) -> None:
    """Raises ClickException if ``extra`` is not installed here. ``what`` needs it: the subject of the sentence."""
    lacking = missing(extra)
    if lacking:
        install = _BETTER.get(extra, f"'causeway[{extra}]'")
        raise click.ClickException(
            f"{what} needs the extra '{extra}', which is not installed here (no {', '.join(lacking)}): pip install {install}."
        )


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # The package that it is in is not there.
        return False
