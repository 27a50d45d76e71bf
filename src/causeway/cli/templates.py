"""Templates of reports, in the packages of the commands that make them."""

from __future__ import annotations

import jinja2


def environment(package: str) -> jinja2.Environment:
    """For the templates of a package: HTML is escaped, and a name that is not given is an error."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package, "templates"),
        autoescape=jinja2.select_autoescape(["html.j2"]),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


__all__ = ["environment"]
