"""HTTP calls to Placement: counts them, limits their time, and distinguishes their refusals."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlencode

from keystoneauth1 import exceptions as keystone_errors
from keystoneauth1.adapter import Adapter
from oslo_context import context as oslo_context

from causeway import errors
from causeway.clients.session import calls

# The oldest version with everything that we use (same_subtree, consumer generations), so a deployment must have it.
MICROVERSION = "1.36"
# Seconds until a call whose connection broke is repeated.
RECONNECT_PAUSE = 0.1
CONCURRENT_UPDATE = "placement.concurrent_update"
_CONFLICT = re.compile(r"consumer generation conflict - expected (\d+|null) but got (\d+|None)")


class Refusal(Exception):
    """Placement answered with an error. It is not raised outside of this package: see `translated`."""

    def __init__(self, call: str, status: int, code: str, detail: str) -> None:
        super().__init__(f"{call}: {status} {code}: {detail}")
        self.call, self.status, self.code, self.detail = call, status, code, detail
        #: the consumer whose generation was wrong, if that is known
        self.consumer: str | None = None
        conflict = _CONFLICT.search(detail)
        expected, sent = conflict.groups() if conflict is not None else ("null", "None")
        #: the generation that the consumer has, and the one that we sent; None: there is no such consumer
        self.expected = None if expected == "null" else int(expected)
        self.sent = None if sent == "None" else int(sent)

    @property
    def is_consumer_conflict(self) -> bool:
        """Whether the consumer generation that we sent was wrong. Then nothing was written."""
        return self.code == CONCURRENT_UPDATE and "consumer generation conflict" in self.detail

    @property
    def is_provider_conflict(self) -> bool:
        """Whether the provider was changed at the same time. Then nothing was written, and trying again helps."""
        return self.code == CONCURRENT_UPDATE and not self.is_consumer_conflict

    @property
    def is_no_room(self) -> bool:
        """Whether the provider can't serve the request: it is full, has no such inventory, or does not exist."""
        return (self.status == 409 and self.code != CONCURRENT_UPDATE) or (
            self.status == 400 and ("does not exist" in self.detail or "Unable to allocate inventory" in self.detail)
        )


class PlacementHttp:
    """Calls over a keystoneauth1 adapter. The endpoint is looked up once, not for each call.

    ``calls`` counts by "METHOD /route/{template}". Retries count too.
    """

    def __init__(self, adapter: Adapter, timeout: float) -> None:
        self._adapter = adapter
        self._timeout = timeout
        self._endpoint: str | None = getattr(adapter, "endpoint_override", None)
        self._calls: Counter[str] = Counter()
        self._counting = threading.Lock()

    @property
    def calls(self) -> Counter[str]:
        with self._counting:
            return Counter(self._calls)

    def reset_calls(self) -> None:
        with self._counting:
            self._calls.clear()

    def call(
        self,
        method: str,
        route: str,
        *,
        body: Any = None,
        query: list[tuple[str, str]] | None = None,
        **parts: str,
    ) -> Any:
        """The decoded answer, or None if there is no body.

        Raises Refusal for an answer of 4xx, ServiceFailed for 5xx and if no answer came in time.
        """
        name = f"{method} {route}"
        url = route.format(**{key: quote(part, safe="") for key, part in parts.items()})
        if query:
            url += "?" + urlencode(query)
        headers = {"OpenStack-API-Version": f"placement {MICROVERSION}", "Accept": "application/json"}
        request = oslo_context.get_current()
        if request is not None:
            # The id of the request that this thread works for, for Placement's log.
            headers["X-OpenStack-Request-ID"] = request.global_id
        data = None
        if body is not None:
            data = json.dumps(body)
            headers["Content-Type"] = "application/json"
        with self._counting:
            self._calls[name] += 1
        if calls.before is not None:
            calls.before(f"placement {name}")
        try:
            response = self._adapter.request(
                url,
                method,
                data=data,
                headers=headers,
                endpoint_override=self._resolve(),
                timeout=self._timeout,
                raise_exc=False,
                # Placement just closed a kept connection. Repeating is harmless even if the first call took effect: then the
                # generation is refused, and the record is read.
                connect_retries=1,
                connect_retry_delay=RECONNECT_PAUSE,
            )
        except keystone_errors.ClientException as error:
            raise errors.ServiceFailed(
                "The Placement service did not answer. Try again later.", details=f"{name}: {error}"
            ) from error
        if calls.after is not None:
            calls.after(f"placement {name}")
        if response.status_code >= 500:
            raise errors.ServiceFailed(
                "The Placement service failed. Try again later.",
                details=f"{name}: {response.status_code}: {response.text[:500]}",
            )
        if response.status_code >= 400:
            raise _refusal(name, response)
        return response.json() if response.content else None

    def _resolve(self) -> str:
        if self._endpoint is None:
            self._endpoint = self._adapter.get_endpoint()
            if self._endpoint is None:
                raise errors.ServiceFailed(
                    "The Placement service is not in the service catalog.",
                    details="no endpoint for service type placement; see [placement] valid_interfaces, region_name",
                )
        return self._endpoint


def _refusal(name: str, response: Any) -> Refusal:
    try:
        first = response.json()["errors"][0]
    except (ValueError, LookupError, TypeError):
        return Refusal(name, response.status_code, "", response.text[:500])
    return Refusal(name, response.status_code, first.get("code", ""), first.get("detail", ""))


@contextmanager
def translated(what: str, *, no_room: str | None = None, contended: str | None = None) -> Iterator[None]:
    """Translates refusals of Placement into our errors. ``what``: "to ..." completes "Placement refused".

    ``no_room``: the message of ClaimRefused for a full or missing provider; None if that is impossible. ``contended``: its
    message for a provider to which others kept writing, if another provider will do.
    """
    try:
        yield
    except Refusal as refusal:
        if no_room is not None and refusal.is_no_room:
            raise errors.ClaimRefused(no_room, details=str(refusal)) from refusal
        if contended is not None and refusal.is_provider_conflict:
            raise errors.ClaimRefused(contended, details=str(refusal)) from refusal
        if refusal.code == CONCURRENT_UPDATE:
            raise errors.ServiceFailed(
                f"Placement failed {what}: others kept writing at the same time. Try again.",
                details=str(refusal),
            ) from refusal
        raise errors.ServiceRefused(f"Placement refused {what}.", details=str(refusal)) from refusal
