"""Serves a devcloud service over HTTP: turns a route table of plain functions into a Falcon app.

A handler takes a `Call` and the path's parameters, and returns the JSON body (or None). The app adds the token check, one store
transaction, the service's error body, and the count of calls.
"""

import logging
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import falcon
import msgspec
from sqlalchemy.orm import Session

from causeway.devcloud.bodies import Json, drain, read_json
from causeway.devcloud.cloud import Cloud
from causeway.devcloud.context import NOBODY, Caller
from causeway.devcloud.errors import ApiError, bad_request, forbidden
from causeway.devcloud.tables.base import new_id

LOG = logging.getLogger(__name__)

Handler = Callable[..., Json | list[Any] | None]
ErrorBody = Callable[[int, str, str], tuple[str, bytes]]


@dataclass(slots=True)
class Call:
    """One request, for its handler."""

    cloud: Cloud
    request: falcon.Request
    response: falcon.Response
    caller: Caller
    session: Session = field(repr=False)
    microversion: tuple[int, int] = (0, 0)
    after_commit: list[Callable[[], None]] = field(default_factory=list)

    def body(self, key: str | None = None) -> Json:
        """The request's JSON object, or the object below its key. Raises ApiError 400 if it is missing."""
        document = read_json(self.request)
        if key is not None:
            document = document.get(key) if isinstance(document, dict) else None
            if not isinstance(document, dict):
                raise bad_request(f"The request body must be a JSON object with the key '{key}'.", "HTTPBadRequest")
        if not isinstance(document, dict):
            raise bad_request("The request body must be a JSON object.", "HTTPBadRequest")
        return document

    def require_admin(self) -> None:
        if not self.caller.is_admin:
            raise forbidden()

    def require_privileged(self) -> None:
        if not self.caller.is_privileged:
            raise forbidden()

    @property
    def project_id(self) -> str:
        """The project of the caller's token. Raises ApiError 403 if the token is unscoped."""
        if self.caller.project_id is None:
            raise forbidden("The request needs a token that is scoped to a project.")
        return self.caller.project_id


@dataclass(frozen=True, slots=True)
class Route:
    """A row of a service's route table.

    `status`: of success. `in_transaction` is off for handlers that stream data: these may use `Call.session` only inside their
    own transaction.
    """

    method: str
    path: str
    handler: Handler
    status: int = 200
    public: bool = False
    in_transaction: bool = True


class Service:
    """One API: its name in fault rules and counters, its routes and its error body."""

    def __init__(
        self,
        cloud: Cloud,
        name: str,
        routes: Iterable[Route],
        error_body: ErrorBody,
        negotiate: Callable[[falcon.Request, falcon.Response], tuple[int, int]] | None = None,
    ) -> None:
        self._cloud = cloud
        self._name = name
        self._error_body = error_body
        self._negotiate = negotiate
        self.app = falcon.App()
        self.app.req_options.strip_url_path_trailing_slash = True
        self.app.req_options.keep_blank_qs_values = True
        self.app.req_options.auto_parse_qs_csv = False
        self.app.add_error_handler(ApiError, self._on_api_error)
        self.app.add_error_handler(falcon.HTTPError, self._on_http_error)
        self.app.add_error_handler(Exception, self._on_crash)
        by_path: dict[str, _Resource] = {}
        for route in routes:
            setattr(by_path.setdefault(route.path, _Resource()), f"on_{route.method.lower()}", self._responder(route))
        for path, resource in by_path.items():
            self.app.add_route(path, resource)

    def _responder(self, route: Route) -> Callable[..., None]:
        cloud = self._cloud
        handler = route.handler
        counter = f"{self._name} {route.method} {route.path}"
        status = falcon.code_to_http_status(route.status)

        def respond(request: falcon.Request, response: falcon.Response, **parameters: str) -> None:
            cloud.count(counter)
            response.set_header("x-openstack-request-id", f"req-{new_id()}")
            response.status = status
            caller = NOBODY if route.public else self._authenticate(request)
            version = self._negotiate(request, response) if self._negotiate else (0, 0)
            with cloud.store.transaction() if route.in_transaction else nullcontext(cloud.store.session) as session:
                call = Call(cloud, request, response, caller, session, version)
                body = handler(call, **parameters)
                if body is not None:
                    response.content_type = "application/json"
                    response.data = msgspec.json.encode(body)
            for action in call.after_commit:
                action()

        return respond

    def _authenticate(self, request: falcon.Request) -> Caller:
        caller = self._cloud.tokens.check(request.get_header("X-Auth-Token"))
        if caller is None:
            raise ApiError(401, "The request you have made requires authentication.", "Unauthorized")
        return caller

    def _write_error(
        self, request: falcon.Request, response: falcon.Response, status: int, message: str, kind: str
    ) -> None:
        drain(request.env)
        response.status = falcon.code_to_http_status(status)
        response.content_type, response.data = self._error_body(status, message, kind)
        if status == 401:
            response.set_header("WWW-Authenticate", f'Keystone uri="{self._cloud.config.base_url}/identity"')

    def _on_api_error(self, request: falcon.Request, response: falcon.Response, error: ApiError, _params: Json) -> None:
        self._write_error(request, response, error.status, error.message, error.kind)

    def _on_http_error(
        self, request: falcon.Request, response: falcon.Response, error: falcon.HTTPError, _params: Json
    ) -> None:
        message = error.description or error.title or "The request failed."
        self._write_error(request, response, error.status_code, message, "HTTPError")
        if error.headers is not None:
            response.set_headers(error.headers)

    def _on_crash(self, request: falcon.Request, response: falcon.Response, _error: Exception, _params: Json) -> None:
        LOG.exception("%s failed: %s %s", self._name, request.method, request.path)
        self._write_error(
            request, response, 500, "An unexpected error occurred in devcloud; its log says more.", "Unexpected"
        )


class _Resource:
    """Carries the `on_*` functions of one path."""


def phrase(status: int) -> str:
    return HTTPStatus(status).phrase


def links_root(request: falcon.Request) -> str:
    """The service's root URL as the client used it, without a slash at the end."""
    return str(request.prefix)
