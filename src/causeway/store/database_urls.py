"""URLs of databases: which are understood, and whose drivers are installed."""

from __future__ import annotations

import importlib.util

import sqlalchemy as sa

from causeway import errors

_FORMS = "postgresql://USER:PASSWORD@HOST/NAME, mysql+pymysql://USER:PASSWORD@HOST/NAME or sqlite:////PATH"
# dialect -> (its driver's module, the extra of this package with it)
_DRIVERS = {"postgresql": ("psycopg2", "postgresql"), "mysql": ("pymysql", "mysql"), "mariadb": ("pymysql", "mysql")}


def parse(url: str, name: str) -> sa.URL:
    """The URL of the database of ``name``. Raises Misconfigured, in whose message no password is."""
    try:
        found = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError) as failure:
        raise errors.Misconfigured(
            f"The URL of the database of {name} is not understood. Write it as {_FORMS}."
        ) from failure
    dialect, _plus, driver = found.drivername.partition("+")
    if dialect == "sqlite":
        return found
    if dialect not in _DRIVERS:
        hint = "Write postgresql:// instead of postgres://." if dialect == "postgres" else f"Write it as {_FORMS}."
        raise errors.Misconfigured(f"The URL of the database of {name} begins with {found.drivername}://. {hint}")
    module, extra = _DRIVERS[dialect]
    if extra == "mysql" and not driver and importlib.util.find_spec("MySQLdb") is None:
        raise errors.Misconfigured(
            f"The URL of the database of {name} begins with {dialect}://. Write {dialect}+pymysql:// instead."
        )
    if (driver or "psycopg2") == module and importlib.util.find_spec(module) is None:
        raise errors.Misconfigured(
            f"The database of {name} needs {module}: install causeway with its extra '{extra}'.",
        )
    return found
