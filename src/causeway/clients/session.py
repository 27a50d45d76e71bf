"""Calls to other services: credentials, endpoints, retries, counting, and the errors for failures.

One `ServiceSessions` per process holds the connections (kept alive, shared by all threads) and the credentials. Each client
has a `ServiceApi` of it and calls routes::

    api = ServiceApi(sessions, "glance", "image", version_suffix="/v2")
    route, what = "/v2/images/{image_id}", "show image x"
    api.call(context, "GET", route, what, called_as=named("x"), image_id="x", missing=ImageNotFound(...)).json()

**Credentials.** As whom a call is made, with the user's token or with our own credentials, `causeway.clients.rights` decides by
what the call is about (``called_as``). Our own credentials are those of the client's group, else those of ``[service_user]``. A
call with a user's token also has an ``X-Service-Token`` if ``[service_user] send_service_user_token`` is set.

**Retries.** Answers of 5xx and broken connections are retried ``http_retries`` times with growing pauses, if the call may be
repeated (all except POST, unless the caller says otherwise). Everything else fails at once.

keystoneauth1 loads credentials, fetches tokens and reads the catalog. The calls themselves use the connection pool of
`requests` directly. Its sessions and keystoneauth's need more CPU than the rest of a call (0.4 ms for a call; 0.9 ms with a
keystoneauth Adapter, 2.1 ms with openstacksdk's resources), and a move makes twenty calls.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import requests
import tenacity
from keystoneauth1 import exceptions as keystone_errors
from requests.structures import CaseInsensitiveDict

from causeway import errors
from causeway.clients.answers import error_of, message_of
from causeway.clients.connections import DEFAULT_TIMEOUT_SECONDS, ServiceSessions, calls, certificates
from causeway.clients.rights import EXPIRED, About, CalledAs, Rights, decide
from causeway.context import RequestContext

LOG = logging.getLogger(__name__)

CONNECT_TIMEOUT_SECONDS = 10.0
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 3.0
RETRIED_STATUSES = frozenset({500, 502, 503, 504})
REPEATABLE_METHODS = frozenset({"GET", "HEAD", "PUT", "DELETE"})

# A value to send as JSON, or a callable that returns it, called with True if the call uses our own credentials.
Body = Any
Query = Mapping[str, Any] | Iterable[tuple[str, Any]] | Callable[[bool], Mapping[str, Any]] | None


@dataclass(frozen=True)
class _Endpoint:
    """Where a service is. ``project_part`` is what follows in the URL if it names the project, with ``{project}``."""

    url: str
    project_part: str
    own_project: str | None
    verify: Any
    cert: Any
    proxies: dict[str, str]


@dataclass(frozen=True)
class Address:
    """How to find a service in the catalog; ``endpoint`` replaces the catalog's."""

    service_type: str
    interfaces: list[str]
    region: str | None = None
    endpoint: str | None = None

    @classmethod
    def of_group(cls, options: Any) -> Address:
        """By keystoneauth's option names."""
        return cls(options.service_type, options.valid_interfaces, options.region_name, options.endpoint_override)


class _Failed(Exception):
    """A call that may be repeated failed. ``error`` is raised after the last retry."""

    def __init__(self, error: errors.ServiceFailed) -> None:
        super().__init__(error.message)
        self.error = error


class ServiceApi:
    """Calls to one service. ``group``: of its options; ``name``: its name in messages and counts.

    ``version_suffix`` is cut from the end of the catalog's URL, since routes begin with the version. ``address``: where the
    service is, if the group does not say so with keystoneauth's options.
    """

    def __init__(
        self,
        sessions: ServiceSessions,
        group: str,
        name: str,
        *,
        version_suffix: str = "",
        address: Address | None = None,
        retries: int = 3,
    ) -> None:
        options = getattr(sessions.conf, group)
        self.sessions = sessions
        self.name = name
        self.group = group
        self._suffix = version_suffix
        self._address = address or Address.of_group(options)
        self._options = options
        self._timeout = (CONNECT_TIMEOUT_SECONDS, float(options.timeout or DEFAULT_TIMEOUT_SECONDS))
        self._retries = retries
        self._retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_Failed),
            stop=tenacity.stop_any(
                tenacity.stop_after_attempt(retries + 1), tenacity.stop_when_event_set(sessions.stopping)
            ),
            wait=tenacity.wait_exponential(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS) + tenacity.wait_random(0, 0.1),
            sleep=tenacity.sleep_using_event(sessions.stopping),
            reraise=True,
        )
        self._endpoint: _Endpoint | None = None

    def call(
        self,
        context: RequestContext | None,
        method: str,
        route: str,
        what: str,
        *,
        called_as: CalledAs,
        body: Body = None,
        query: Query = None,
        headers: Mapping[str, str] | None = None,
        data: Callable[[], Iterable[bytes]] | None = None,
        missing: errors.NotFound | None = None,
        accept: Iterable[int] = (),
        repeatable: bool | None = None,
        service_token: bool = False,
        stream: bool = False,
        is_users: bool | None = None,
        **parts: str,
    ) -> requests.Response:
        """Makes a call. Returns the answer, if it is a success or its status is in ``accept``.

        ``what`` completes "refused to ..." in messages. ``called_as``: what the call is about, which decides as whom it is made.
        ``body`` is sent as JSON; if it or ``query`` is a callable, it is called with True if the call uses our own credentials.
        ``missing`` is raised for 404. ``data`` returns data to stream, in chunks if there is no Content-Length header.
        ``service_token``: send X-Service-Token whenever there are credentials for it. ``is_users``: whether the call does what a
        user asked for; by default all do but those of the system's own (`SERVICE`).

        Raises ServiceFailed (no answer, 5xx), RequestRefused (400 and 409 to what a user asked for), ServiceRefused (other 4xx),
        Forbidden, Unauthorized, NotFound, OverQuota.
        """
        if data is not None or repeatable is False or (repeatable is None and method not in REPEATABLE_METHODS):
            retries = 0
        else:
            retries = self._retries
        path = route.format(**{key: quote(part, safe="") for key, part in parts.items()}) if parts else route
        key = f"{self.name} {method} {route}"

        def send_as(user: bool, fresh: bool = False) -> requests.Response:
            asked = query(not user) if callable(query) else query
            full = path + "?" + urlencode([*_pairs(asked)], doseq=True) if asked else path
            prepared = self._prepare(context, user, fresh, method, full, body, headers, data, service_token)
            return self._send(key, what, prepared, retries, stream)

        response, as_user = self._with(self._rights(context, called_as, what), context, key, send_as)
        if response.status_code < 400 or response.status_code in accept:
            return response
        if response.status_code == 401 and not as_user:
            # These were our own credentials: the user can't do anything.
            raise errors.ServiceFailed(
                f"The {self.name} service does not accept this service's own credentials.",
                details=f"{key}: {message_of(response)}; see [{self.group}] and [service_user]",
            )
        if is_users is None:
            is_users = called_as.about is not About.OURS
        raise error_of(self.name, response, what, missing, is_users=is_users)

    @property
    def own_project(self) -> str | None:
        """The project of our own credentials; None without any."""
        return self._resolve().own_project

    def _rights(self, context: RequestContext | None, called_as: CalledAs, what: str) -> Rights:
        rights = decide(context, called_as, what, without_identity=self.sessions.is_without_identity)
        if rights.ours_after and self.sessions.credentials(self.group) is None:
            return Rights(as_user=True)
        has_expired = context is not None and self.sessions.has_expired(context.auth_token or "")
        if rights.as_user and has_expired and rights.ours_after >= EXPIRED:
            return Rights(as_user=False)
        return rights

    def _with(
        self,
        rights: Rights,
        context: RequestContext | None,
        key: str,
        send_as: Callable[..., requests.Response],
    ) -> tuple[requests.Response, bool]:
        """Sends a call, and once more with our own credentials where the rights say so.

        Returns the answer, and whether it is one to the user's token.
        """
        if not rights.as_user:
            return _with_ours(send_as), False
        response = send_as(True)
        if response.status_code not in rights.ours_after:
            return response, True
        LOG.debug("%s: %d with the user's token; called again with our own credentials", key, response.status_code)
        if response.status_code in EXPIRED and context is not None and context.auth_token:
            LOG.info("the user's token has expired; the %s service is called with our own credentials", self.name)
            self.sessions.remember_expired(context.auth_token)
        response.close()
        return _with_ours(send_as), False

    def _prepare(
        self,
        context: RequestContext | None,
        as_user: bool,
        fresh: bool,
        method: str,
        path: str,
        body: Body,
        headers: Mapping[str, str] | None,
        data: Callable[[], Iterable[bytes]] | None,
        service_token: bool,
    ) -> requests.PreparedRequest:
        endpoint = self._resolve()
        request = requests.PreparedRequest()
        request.method = method
        sent: dict[str, str] = {"Accept": "application/json", "User-Agent": "causeway"}
        project = endpoint.own_project
        if as_user and context is not None:
            sent["X-Auth-Token"] = context.auth_token or ""
            project = context.project_id or project
            if service_token or self.sessions.sends_service_token:
                credentials = self.sessions.credentials("service_user") or self.sessions.credentials(self.group)
                if credentials is not None:
                    sent["X-Service-Token"] = self.sessions.token(credentials)
        else:
            credentials = self.sessions.credentials(self.group)
            if credentials is None:
                raise self._unconfigured()
            sent["X-Auth-Token"] = self.sessions.token(credentials, fresh=fresh)
            if service_token:
                sent["X-Service-Token"] = sent["X-Auth-Token"]
        if context is not None and context.global_id:
            sent["X-OpenStack-Request-Id"] = context.global_id
        if headers:
            sent.update(headers)
        if callable(body):
            body = body(not as_user)
        if body is not None:
            encoded = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
            sent["Content-Length"] = str(len(encoded))
            request.body = encoded
        elif data is not None:
            request.body = data()  # type: ignore[assignment]
        elif method in ("POST", "PUT"):
            sent["Content-Length"] = "0"
        if endpoint.project_part:
            version, _slash, rest = path[1:].partition("/")
            request.url = f"{endpoint.url}/{version}{endpoint.project_part.format(project=project)}/{rest}"
        else:
            request.url = endpoint.url + path
        request.headers = CaseInsensitiveDict(sent)
        request.hooks = {"response": []}
        request._cookies = None  # type: ignore[attr-defined]
        return request

    def _send(
        self, key: str, what: str, request: requests.PreparedRequest, retries: int, stream: bool
    ) -> requests.Response:
        if not retries:
            try:
                return self._send_once(key, what, request, stream)
            except _Failed as failed:
                raise failed.error from failed.__cause__
        try:
            return self._retrying(self._send_once, key, what, request, stream)
        except _Failed as failed:
            raise failed.error from failed.__cause__

    def _send_once(self, key: str, what: str, request: requests.PreparedRequest, stream: bool) -> requests.Response:
        endpoint = self._resolve()
        calls.count(key)
        if calls.before is not None:
            calls.before(key)
        began = time.perf_counter()
        try:
            response = self.sessions.transport.get_adapter(request.url or "").send(
                request,
                stream=True,
                timeout=self._timeout,
                verify=endpoint.verify,
                cert=endpoint.cert,
                proxies=endpoint.proxies,
            )
            if not stream or response.status_code >= 400:
                response.content  # noqa: B018 - reads it, which returns the connection to the pool
        except (requests.RequestException, OSError) as error:
            raise _Failed(
                errors.ServiceFailed(
                    f"The {self.name} service did not answer when it was asked to {what}. Try again later.",
                    details=f"{key} at {endpoint.url}: {type(error).__name__}: {error}",
                )
            ) from error
        if LOG.isEnabledFor(logging.DEBUG):
            LOG.debug(
                "%s %s -> %d in %.1f ms (%s)",
                request.method,
                request.url,
                response.status_code,
                (time.perf_counter() - began) * 1000,
                response.headers.get("x-openstack-request-id", "no request id"),
            )
        if calls.after is not None:
            calls.after(key)
        if response.status_code in RETRIED_STATUSES:
            raise _Failed(
                errors.ServiceFailed(
                    f"The {self.name} service failed when it was asked to {what}. Try again later.",
                    details=f"{key}: {response.status_code}: {message_of(response)}",
                )
            )
        return response

    def _resolve(self) -> _Endpoint:
        if self._endpoint is None:
            self._endpoint = self._find_endpoint()
        return self._endpoint

    def _find_endpoint(self) -> _Endpoint:
        credentials = self.sessions.credentials(self.group)
        url, own_project = self._address.endpoint, None
        try:
            if credentials is not None:
                own_project = credentials.auth.get_project_id(credentials.session)
                if url is None:
                    url = credentials.auth.get_endpoint(
                        credentials.session,
                        service_type=self._address.service_type,
                        interface=self._address.interfaces,
                        region_name=self._address.region,
                        skip_discovery=True,
                    )
        except keystone_errors.ClientException as error:
            raise errors.ServiceFailed(
                f"The identity service did not say where the {self.name} service is. Try again later.",
                details=f"{type(error).__name__}: {error}",
            ) from error
        if url is None and credentials is None:
            raise self._unconfigured()
        if url is None:
            raise errors.ServiceFailed(
                f"The {self.name} service is not in the service catalog.",
                details=f"no endpoint of type {self._address.service_type}: see valid_interfaces, region_name and"
                f" endpoint_override in [{self.group}]",
            )
        url, project_part = self._split(str(url).rstrip("/"), own_project)
        verify, cert = certificates(self._options)
        return _Endpoint(
            url=url,
            project_part=project_part,
            own_project=own_project,
            verify=verify,
            cert=cert,
            proxies=dict(requests.utils.get_environ_proxies(url)),
        )

    def _split(self, url: str, own_project: str | None) -> tuple[str, str]:
        """(root, part with the project) of a catalog's URL: some services have the project in all their paths."""
        part = ""
        for mark in filter(None, (own_project, "%(project_id)s", "%(tenant_id)s", "$(project_id)s")):
            for prefix in ("/", "/AUTH_"):
                if url.endswith(prefix + mark):
                    url, part = url.removesuffix(prefix + mark), prefix + "{project}"
        return url.removesuffix(self._suffix).rstrip("/"), part

    def _unconfigured(self) -> errors.ServiceFailed:
        return errors.ServiceFailed(
            f"The {self.name} service can't be called: this service has no credentials of its own.",
            details=f"set auth_type and the options of that plug-in in [{self.group}] or [service_user]",
        )


def _with_ours(send_as: Callable[..., requests.Response]) -> requests.Response:
    """Sends a call with our own credentials; with a new token if the one we have is not valid any more."""
    response = send_as(False)
    if response.status_code == 401:
        response.close()
        response = send_as(False, fresh=True)
    return response


def _pairs(query: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    return query.items() if isinstance(query, Mapping) else query


__all__ = ["Address", "ServiceApi", "ServiceSessions", "calls"]
