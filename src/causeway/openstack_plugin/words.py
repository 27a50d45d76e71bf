"""Puts the API's answers into words. Each function gets a part of an answer as the API sent it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

Shown = Mapping[str, Any]

VERDICTS = {True: "ok", False: "no", None: "?"}
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: float | None) -> str:
    """Bytes, such as "1.5 GiB"."""
    if count is None:
        return ""
    shown, unit = float(count), 0
    while shown >= 1024 and unit < len(_UNITS) - 1:
        shown, unit = shown / 1024, unit + 1
    return f"{shown:.1f} {_UNITS[unit]}" if unit else f"{count:.0f} bytes"


def duration(seconds: float | None) -> str:
    """Seconds, such as "2 h 5 min"."""
    if seconds is None:
        return ""
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds:.2g} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    days, hours = divmod(hours, 24)
    return " ".join(f"{count} {unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if count)


def count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


# --- operations


def standing(operation: Shown) -> str:
    """An operation's state, and what it waits for."""
    state = str(operation["state"])
    wait = operation["waits_for"]
    if wait is None:
        to_be_cancelled = operation["is_cancel_requested"] and operation["is_cancellable"]
        return f"{state}, to be cancelled" if to_be_cancelled else state
    host = f" for {wait['host']}" if wait["host"] is not None else ""
    until = f" until {datetime.fromisoformat(wait['until']):%H:%M:%S} UTC" if wait["until"] is not None else ""
    return f"{state}, waits{host}{until}"


def reason(operation: Shown) -> str:
    """Why it waits, is stuck, or failed; empty if nothing went wrong."""
    wait = operation["waits_for"]
    return str(wait["reason"]) if wait is not None else text_of(operation["error"])


def text_of(error: Shown | None) -> str:
    return " ".join(filter(None, ((error or {}).get(part) for part in ("message", "details"))))


def errors_of(step: Shown) -> str:
    """The last error, and the first one if that was another."""
    last, first = text_of(step["error"]), text_of(step["first_error"])
    return last if first in ("", last) else f"{last} At first: {first}"


def transferred(shown: Shown) -> str:
    """The bytes so far and in all, the round and the time left; after the end only how many bytes and rounds it took."""
    if shown["bytes_done"] is None:
        return ""
    text, rounds = f"{shown['bytes_done']:,}", shown["round"]
    if shown["ended_at"] is not None:
        return text + (f" in {rounds} rounds" if rounds is not None and rounds > 1 else "")
    text += f" of {shown['bytes_total']:,} ({shown['percent']} %)" if shown["bytes_total"] else ""
    text += f", round {rounds}" if rounds is not None else ""
    return text + (f", about {shown['seconds_left']} s left" if shown["seconds_left"] is not None else "")


def step(shown: Shown) -> str:
    """A step in one line."""
    took = "" if shown["seconds"] is None else f" in {shown['seconds']:.3f} s"
    phase = "" if shown["phase"] == "do" else f" ({shown['phase']})"
    tries = "" if shown["attempt"] < 2 else f", attempt {shown['attempt']}"
    text = f"{shown['step']}{phase} on {shown['host'] or 'records'}: {shown['state']}{took}{tries}"
    moved = f"bytes: {transferred(shown)}" if shown["bytes_done"] is not None else ""
    return "; ".join(filter(None, [text, moved, errors_of(shown)]))


# --- where a server could be moved to


def contents(moves: Shown) -> str:
    """What a move takes along."""
    disk = "nothing" if not moves["disk_gb"] else f"a disk of {moves['disk_gb']} GiB"
    if moves["disk_bytes"] is not None and moves["disk_gb"]:
        disk += f" ({moves['disk_bytes']:,} bytes used)"
    things = ", ".join([disk, count(len(moves["volumes"]), "volume"), count(len(moves["ports"]), "port")])
    note = f" ({moves['note']})" if moves["note"] else ""
    return "; ".join(filter(None, [things + note, moves["travel"], moves["memory"]]))


def why(candidate: Shown) -> str:
    """Why a host was refused, or how the server would go there and what weighed for it."""
    if candidate["fits"]:
        weights = [f"{name.removesuffix('Weigher')} {value:g}" for name, value in candidate["weights"].items() if value]
        weighed = f"{candidate['recipe']}; weight {candidate['weight'] or 0:g}"
        return weighed + (f": {', '.join(weights)}" if weights else "")
    compared = [f"{name}: {value}" for name, value in candidate["values"].items()]
    if candidate["needs"] is not None:
        compared += [f"needs {candidate['needs']}", f"{candidate['free']} free"]
    return f"{candidate['refused_by']}: {candidate['reason']}" + (f" ({', '.join(compared)})" if compared else "")


def check(shown: Shown) -> str:
    """What a dry run at a host says."""
    return f"{shown['name']}: {VERDICTS[shown['passed']]}" + (f" ({shown['message']})" if shown["message"] else "")


# --- drains

_ARRIVED = ("moved", "confirming", "done")


def moment(text: str) -> str:
    """A time of an answer, such as "30 Nov 04:43 UTC"."""
    found = datetime.fromisoformat(text)
    return f"{found.day} {found:%b %H:%M} UTC"


def rate(count: float | None) -> str:
    """Bytes a second, such as "1.5 MiB/s"."""
    return "" if count is None else f"{size(count)}/s"


def end_of_drain(drain: Shown) -> str:
    """When a running drain may end, and what delays it; empty if that is unknown. Services of release 0.1.0 don't say it."""
    progress = drain["progress"]
    if progress.get("ends_at") is None:
        return ""
    when, delay = moment(progress["ends_at"]), progress["delayed_by"]
    said = f"the last not before {when} ({delay})" if delay else f"the last at about {when}"
    return said + (", after its deadline" if progress["meets_deadline"] is False else "")


def servers_of_drain(drain: Shown, what: str = "") -> str:
    """How many servers (``what``: the word for them) have arrived, and when the last one may."""
    counts = drain["progress"]["servers"]
    arrived = sum(number for state, number in counts.items() if state in _ARRIVED)
    return "; ".join(filter(None, [f"{arrived} of {sum(counts.values())} {what}".rstrip(), end_of_drain(drain)]))


def bytes_of_drain(drain: Shown) -> str:
    progress = drain["progress"]
    return f"{size(progress['bytes_done'])} of {size(progress['bytes_total'])}"


# --- an audit


def fix(disagreement: Shown, *, fixed: bool) -> str:
    """How it can be fixed, or was, or why not."""
    if disagreement["left"]:
        return str(disagreement["left"])
    if disagreement["fix"] is None:
        return ""
    action = str(disagreement["fix"]["action"]).replace("_", " ")
    return action if fixed else f"--fix: {action}"
