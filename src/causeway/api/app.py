"""The API as a WSGI application: what every request passes, from outside to inside.

1. `Entrance`: request ids; the health check, version documents and the API's description, for which no token is needed.
2. keystonemiddleware (or ``noauth2``): the token.
3. Falcon with `_Negotiation`: microversion, project id in the URL; then the router, then `dispatch.Endpoint`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import groupby
from time import perf_counter
from typing import Any

import falcon

from causeway import conf, errors, metrics
from causeway.api import auth, faults, openapi, routes, version_documents, versions
from causeway.api.dispatch import LEGACY_PREFIX, VERSIONED_PREFIX, Endpoint, RequestState, Route, send
from causeway.api.request import Response
from causeway.api.resources.health import Health
from causeway.api.services import ApiServices
from causeway.context import RequestContext

LOG = logging.getLogger(__name__)

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def build_app(services: ApiServices) -> auth.WsgiApp:
    """The whole API. The options it reads are registered with ``services.conf`` if they are not yet."""
    conf.register(services.conf)
    inner: auth.WsgiApp = falcon_app(services, routes.ROUTES)
    if services.conf.api.auth_strategy == "noauth2":
        protected = auth.noauth2(inner)
    else:
        protected = auth.keystone(inner, services.conf)
    return Entrance(services, protected)


def falcon_app(services: ApiServices, table: list[Route]) -> falcon.App[Any, Any]:
    """The router with the routes of a table; it trusts the identity headers of its requests."""
    roots = {route.path.split("/")[1] for route in table}
    app: falcon.App[Any, Any] = falcon.App(middleware=[_Negotiation(roots)])
    app.req_options.auto_parse_form_urlencoded = False
    for path, rows in groupby(sorted(table, key=lambda route: route.path), key=lambda route: route.path):
        app.add_route(path, Endpoint(services, list(rows)))
    app.add_error_handler(falcon.HTTPError, _http_error)
    return app


def _http_error(_req: falcon.Request, resp: falcon.Response, error: Any, _params: Any) -> None:
    """Answers what Falcon itself refuses. An unknown method of a known path is 404, as in Nova."""
    status = error.status_code
    if status in (404, 405):
        send(resp, faults.answer(404, faults.NOT_FOUND))
    else:
        send(resp, faults.answer(status, error.description or error.title or ""))


class _Negotiation:
    """Falcon middleware: finds the microversion, and removes prefix and project id from the path."""

    def __init__(self, roots: set[str]) -> None:
        self._roots = roots

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        path = req.path
        prefix = VERSIONED_PREFIX if path.startswith(VERSIONED_PREFIX + "/") else LEGACY_PREFIX
        state = RequestState(versions.MIN, prefix, host_url=version_documents.host_url(req.env))
        req.context.state = state
        path = path[len(prefix) :]
        first, slash, rest = path[1:].partition("/")
        if slash and first not in self._roots:
            state.url_project, path = first, "/" + rest
        req.path = path
        if prefix != LEGACY_PREFIX and not self._negotiate(req, resp, state):
            return
        # A slash at the end is 404, as in Nova; the router would read an empty identifier.
        if path.endswith("/") or req.method not in METHODS:
            raise falcon.HTTPNotFound

    @staticmethod
    def _negotiate(req: falcon.Request, resp: falcon.Response, state: RequestState) -> bool:
        """Whether the version exists; if it does not, answers the request."""
        try:
            state.version = versions.asked_for(req.env)
        except versions.UnparsableVersion as error:
            resp.complete = True
            send(resp, faults.answer(error.status, error.message))
            return False
        except versions.UnsupportedVersion as error:
            resp.complete = True
            send(resp, faults.answer(error.status, error.message))
            resp.set_headers(_version_headers(error.asked))
            return False
        resp.set_headers(_version_headers(state.version))
        return True


def _version_headers(version: versions.Version) -> dict[str, str]:
    return {
        versions.STANDARD_HEADER: f"compute {version}",
        versions.LEGACY_HEADER: str(version),
        "Vary": versions.VARY,
    }


class Entrance:
    """The outermost part: gives every answer its request ids, and answers what needs no token."""

    def __init__(self, services: ApiServices, protected: auth.WsgiApp) -> None:
        self._services = services
        self._protected = protected
        self._health = Health(services)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request_id = environ[auth.ENV_REQUEST_ID] = auth.new_request_id()
        began, answered = perf_counter(), ["500"]
        # From here on, log lines of this thread belong to this request.
        RequestContext(request_id=request_id)

        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            answered[0] = status[:3]
            headers += [("X-Compute-Request-Id", request_id), ("X-OpenStack-Request-ID", request_id)]
            return start_response(status, headers, *more)

        path = environ.get("PATH_INFO", "") or "/"
        public = self._public(path, environ)
        try:
            return self._protected(environ, start) if public is None else _plain(public, start)
        finally:
            # A request has no route if it was refused before the router, or if the router does not know it.
            route = environ.get(auth.ENV_ROUTE) or ("none" if public is None else "public")
            method = environ["REQUEST_METHOD"] if environ["REQUEST_METHOD"] in METHODS else "other"
            seconds = perf_counter() - began
            metrics.API_SECONDS.labels(method, route, answered[0]).observe(seconds)
            level = logging.DEBUG if method in ("GET", "HEAD") else logging.INFO
            LOG.log(level, "%s %s (%s): %s in %.3f s", method, path, route, answered[0], seconds)

    def _public(self, path: str, environ: dict[str, Any]) -> Response | None:
        """The answer to a request that needs no token; None if it needs one."""
        if path.startswith(("/v2.1/", "/v2/")) and path not in ("/v2.1/", "/v2/"):
            return None
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return faults.answer(404, faults.NOT_FOUND)
        if path == "/healthcheck":
            return self._health.answer(environ)
        if path == "/openapi.json":
            return self._description(environ)
        return version_documents.answer(path, self._root(environ))

    def _root(self, environ: dict[str, Any]) -> str:
        prefix: str | None = self._services.conf.api.compute_link_prefix
        return prefix.rstrip("/") if prefix else version_documents.host_url(environ)

    def _description(self, environ: dict[str, Any]) -> Response:
        """OpenAPI of the microversion that the headers ask for; of the newest one if they ask for none."""
        try:
            asked = versions.asked_for(environ, default=versions.MAX)
        except errors.CausewayError as error:
            return faults.answer(error.status, error.message)
        return Response(200, openapi.description(routes.ROUTES, asked, server=self._root(environ)))


def _plain(answer: Response, start_response: Any) -> Iterable[bytes]:
    data = answer.encoded()
    status = str(falcon.code_to_http_status(answer.status))
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(data)))])
    return [data]


__all__ = ["build_app", "falcon_app"]
