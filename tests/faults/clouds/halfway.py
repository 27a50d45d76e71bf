"""A devcloud whose Placement can be held in the middle of a write: behind the transaction that it commits first.

A claim commits its consumer, then its allocations; who deletes allocations commits that, then the end of their consumer. The
rule that says which request is held is a file of one line, "METHOD PATTERN".
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from placement.objects import allocation, consumer

from causeway.embedded.placement.local import LocalPlacement
from causeway.http.strict import WsgiApp
from tests.functional.processes.own_process import Process

ROOT = Path(__file__).parents[3]
# Whether the rule is gone can only be asked again and again.
LOOK_EVERY = 0.1
HALF = "half"

_request = threading.local()


class HalfwayDevcloud(Process):
    """`causeway devcloud`, with `hold` before it."""

    program = Path(sys.executable)

    def __init__(self, directory: Path, name: str, *arguments: str, prefix: Iterable[str] = ()) -> None:
        rule, hits = rule_in(directory), hits_in(directory)
        program = (
            f"import sys; sys.path.insert(0, {str(ROOT)!r});"
            f" from tests.faults.clouds.halfway import hold; hold({str(rule)!r}, {str(hits)!r});"
            " from causeway.cli.main import cli; cli()"
        )
        super().__init__(directory, name, "-W", "ignore", "-c", program, *arguments, prefix=[*prefix])


def rule_in(directory: Path) -> Path:
    return directory / "placement-half.rule"


def hits_in(directory: Path) -> Path:
    """What was held, a line "half METHOD placementPATH" for each."""
    return directory / "placement-half.rule.hits"


def hold(rule: str, hits: str) -> None:
    """From now on this process holds what fits the rule."""
    replace_all, public_app = allocation.replace_all, LocalPlacement.public_app

    def held_before(context: Any, written: list[Any]) -> None:
        _hold(Path(rule), Path(hits))
        replace_all(context, written)

    def held_between(context: Any, deleted: list[Any]) -> None:
        allocation._delete_allocations_by_ids(context, [each.id for each in deleted])
        _hold(Path(rule), Path(hits))
        consumer.delete_consumers_if_no_allocations(context, {each.consumer.uuid for each in deleted})

    def noting(self: LocalPlacement, keystone_authtoken: Mapping[str, Any]) -> WsgiApp:
        app = public_app(self, keystone_authtoken)

        def noted(environ: dict[str, Any], start_response: Any) -> Any:
            _request.now = (environ["REQUEST_METHOD"], environ.get("PATH_INFO", ""))
            return app(environ, start_response)

        return noted

    allocation.replace_all, allocation.delete_all = held_before, held_between
    LocalPlacement.public_app = noting  # type: ignore[method-assign]


def _hold(rule: Path, hits: Path) -> None:
    """The first request that fits, until the rule is gone."""
    if hits.exists() or not rule.exists():
        return
    method, pattern = rule.read_text().split(" ", 1)
    asked, path = _request.now
    if asked != method or re.search(pattern, path) is None:
        return
    hits.write_text(f"{HALF} {asked} placement{path}\n")
    while rule.exists():
        time.sleep(LOOK_EVERY)
