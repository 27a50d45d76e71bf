"""``/healthcheck``: whether this API works, and what it can't reach.

The plain check is cheap and always 200: the process answers. With ``?detailed=true`` the API database and the cells' databases
are asked at the same time, for at most `PATIENCE` seconds: 503 if the API database does not answer, 200 with the names of
cells that don't (the API serves without them). Only callers on this machine get it, and only without a proxy.

A database that hangs is not asked again while it does, and answers are remembered for `MAX_AGE` seconds, so that nobody can
tie up threads with this.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from causeway import errors
from causeway.api.request import Response
from causeway.api.services import ApiServices

PATIENCE = 3.0
MAX_AGE = 2.0
LOCAL = ("127.", "::1", "::ffff:127.")


class Health:
    """Checks the databases that the API needs, and remembers their answers."""

    def __init__(self, services: ApiServices) -> None:
        self._services = services
        self._looking = threading.Lock()
        self._hanging: dict[str, threading.Thread] = {}
        self._seen: dict[str, str] = {}
        self._seen_at = float("-inf")

    def answer(self, environ: dict[str, Any]) -> Response:
        detailed = parse_qs(environ.get("QUERY_STRING", "")).get("detailed", ["false"])[-1].lower() in (
            "1",
            "true",
            "yes",
        )
        if not detailed or not _is_local(environ):
            return Response(200, {"status": "OK"})
        with self._looking:
            if time.monotonic() - self._seen_at > MAX_AGE:
                self._seen, self._seen_at = self._look(), time.monotonic()
        down = {name: said for name, said in self._seen.items() if said != "OK"}
        unusable = "API database" in down
        overall = "UNAVAILABLE" if unusable else "DEGRADED" if down else "OK"
        return Response(503 if unusable else 200, {"status": overall, "checks": self._seen})

    def _look(self) -> dict[str, str]:
        services, found = self._services, {}
        seen = self._ask({"API database": services.api.ping})
        if seen["API database"] == "OK":
            try:
                found = {cell.name: services.cells.open(cell).ping for cell in services.cells.mappings()}
            except errors.CausewayError as failure:
                return {"API database": failure.message}
        return seen | self._ask(found)

    def _ask(self, checks: dict[str, Callable[[], None]]) -> dict[str, str]:
        results: dict[str, str] = {}

        def work(name: str, check: Callable[[], None]) -> None:
            try:
                check()
                results[name] = "OK"
            except errors.CausewayError as failure:
                results[name] = failure.message

        for name, check in checks.items():
            if name not in self._hanging or not self._hanging[name].is_alive():
                self._hanging[name] = threading.Thread(
                    target=work, args=(name, check), name=f"health-{name}", daemon=True
                )
                self._hanging[name].start()
        end = time.monotonic() + PATIENCE
        for name in checks:
            self._hanging[name].join(max(0.0, end - time.monotonic()))
        return {name: results.get(name, "does not answer") for name in checks}


def _is_local(environ: dict[str, Any]) -> bool:
    proxied = any(environ.get(name) for name in ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED"))
    return not proxied and str(environ.get("REMOTE_ADDR", "")).startswith(LOCAL)
