"""What commands about hosts show, as text and as JSON."""

from __future__ import annotations

import json

import click
import msgspec

json_option = click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")


def as_json_text(value: object) -> str:
    return json.dumps(msgspec.to_builtins(value, str_keys=True), indent=2)


def printable(line: str) -> str:
    """A host may be compromised, and its answer goes to a terminal."""
    return "".join(each if each.isprintable() else "?" for each in line)


__all__ = ["as_json_text", "json_option", "printable"]
