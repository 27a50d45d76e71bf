"""One path of the API: picks the handler by method, microversion and action, validates, runs it, answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import falcon
import msgspec
from oslo_log import log

from causeway import errors
from causeway.api import auth, faults, validation, versions
from causeway.api.differences import SAMPLE, differences_of
from causeway.api.request import ApiRequest, Handler, JsonSchema, Response, schema_for
from causeway.api.schemas.common import NO_QUERY, takes_nothing
from causeway.api.services import ApiServices
from causeway.http.body import stream_of
from causeway.http.strict import BrokenBody

JSON_TYPES = frozenset({"application/json", "application/vnd.openstack.compute+json"})
MAX_BODY_BYTES = 114688  # as Nova's, from oslo.middleware's sizelimit
# Values of one query parameter, and different parameters: well below what makes a statement of a database too deep or long.
MOST_VALUES, MOST_PARAMETERS = 100, 200
# Characters of a parameter's name that an error shows.
_MOST_SHOWN = 64
# Parameters whose values are lists with commas in them; parameters that belong together by their places.
LISTS = frozenset({"tags", "tags-any", "not-tags", "not-tags-any"})
PAIRED = frozenset({"sort_key", "sort_dir"})
VERSIONED_PREFIX, LEGACY_PREFIX = "/v2.1", "/v2"

LOG = log.getLogger(__name__)

_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True)
class Route:
    """One row of the route table. ``action``: the key of the body which names the action of a ``.../action`` path."""

    method: str
    path: str
    handler: Handler
    first: int = 1
    last: int | None = None
    action: str | None = None

    @property
    def label(self) -> str:
        """The route's name in metrics."""
        return self.path if self.action is None else f"{self.path}:{self.action}"

    def serves(self, minor: int) -> bool:
        return self.first <= minor and (self.last is None or minor <= self.last)


class Endpoint:
    """A path with all its routes; Falcon calls ``on_<method>``."""

    def __init__(self, services: ApiServices, routes: list[Route]) -> None:
        self._services = services
        self._by_method: dict[str, list[Route]] = {}
        for route in routes:
            self._by_method.setdefault(route.method, []).append(route)
        for method in self._by_method:
            setattr(self, f"on_{method.lower()}", self._responder(method))

    def on_options(self, _req: falcon.Request, _resp: falcon.Response, **_parameters: str) -> None:
        """Refuses OPTIONS, as Nova does; Falcon would list the methods."""
        raise falcon.HTTPNotFound

    def _responder(self, method: str) -> Any:
        routes = self._by_method[method]
        path = routes[0].path

        def respond(req: falcon.Request, resp: falcon.Response, **parameters: str) -> None:
            state: RequestState = req.context.state
            req.env[auth.ENV_ROUTE] = path
            try:
                answer = self._answer(routes, req, state, parameters)
            except Exception as error:  # noqa: BLE001 - every failure becomes an answer; unexpected ones are logged
                answer = faults.of_error(error, f"{method} {req.path}")
            send(resp, answer)

        return respond

    def _answer(
        self, routes: list[Route], req: falcon.Request, state: RequestState, parameters: dict[str, str]
    ) -> Response:
        context = auth.context_of(req.env, self._services.enforcer)
        if any("\x00" in value for value in parameters.values()):
            raise errors.NotFound(faults.NOT_FOUND)
        if state.url_project and state.url_project != context.project_id:
            raise errors.BadRequest(
                f"Malformed request URL: URL's project_id '{state.url_project}' doesn't match Context's project_id "
                f"'{context.project_id}'"
            )
        minor = state.version.minor
        body = _read_body(req) if req.method in ("POST", "PUT", "PATCH") or req.content_length else None
        route = _choose(routes, minor, body)
        req.env[auth.ENV_ROUTE] = route.label
        request = ApiRequest(
            services=self._services,
            context=context,
            version=state.version,
            method=req.method,
            path=req.path,
            base_url=state.base_url(self._services),
            api_prefix=state.prefix,
            url_project=state.url_project,
            query=_query(req.query_string),
            body=body,
        )
        _check(request, route, legacy=state.prefix == LEGACY_PREFIX)
        answer = route.handler.run(request, **parameters)
        self._check_answer(answer, route, minor)
        return answer

    def _check_answer(self, answer: Response, route: Route, minor: int) -> None:
        """Compares an answer with its schema. A difference raises AnswerDiffers or is logged, as ``response_validation`` says."""
        wanted = self._services.conf.api.response_validation
        if wanted == "ignore":
            return
        differences = differences_of(answer, route.handler, minor, rows=None if wanted == "error" else SAMPLE)
        if not differences:
            return
        what = f"The answer of {route.method} {route.label} in version 2.{minor}"
        message = f"{what} differs from its schema: {'; '.join(differences)}"
        if wanted == "error":
            raise AnswerDiffers(message)
        LOG.warning("%s", message)


def query_schema(route: Route, minor: int) -> JsonSchema | None:
    """The schema of the query parameters; None if any are fine. From 2.102 on, a GET takes no unknown ones."""
    schemas = route.handler.query
    if schemas is None and route.method == "GET":
        schemas = NO_QUERY
    return None if schemas is None else schema_for(schemas, minor)


def _check(request: ApiRequest, route: Route, *, legacy: bool) -> None:
    """Validates query and body. Raises ValidationFailed, or BadRequest if a body is needed and there is none."""
    minor = request.version.minor
    schema = query_schema(route, minor)
    if schema is not None:
        validation.check_query(request.query, schema, legacy=legacy)
    request.query = {name: _different(name, values) for name, values in request.query.items()}
    schema = schema_for(route.handler.body, minor) if route.handler.body is not None else None
    if schema is not None:
        if request.body is None and not takes_nothing(schema):
            raise errors.BadRequest("Malformed request body: it is missing.")
        if legacy:
            request.body = validation.without_outer_spaces(request.body, schema)
        validation.check_body(request.body, schema, legacy=legacy)


class AnswerDiffers(errors.CausewayError):
    """An answer differs from its schema. The request itself was carried out."""

    status, code = 500, "answer_differs"


@dataclass(slots=True)
class RequestState:
    """What is known of a request before it is routed."""

    version: versions.Version
    prefix: str = VERSIONED_PREFIX
    url_project: str | None = None
    host_url: str = ""

    def base_url(self, services: ApiServices) -> str:
        prefix: str | None = services.conf.api.compute_link_prefix
        return prefix.rstrip("/") if prefix else self.host_url


def send(resp: falcon.Response, answer: Response) -> None:
    """Writes an answer into Falcon's response."""
    resp.status = falcon.code_to_http_status(answer.status)
    if answer.headers:
        resp.set_headers(answer.headers)
    if answer.body is not None:
        resp.content_type = "application/json"
        resp.data = answer.encoded()
    elif answer.status != 204:
        resp.content_type = "application/json"
        resp.data = b""


def _query(text: str) -> dict[str, list[str]]:
    query: dict[str, list[str]] = {}
    if text:
        try:
            pairs = parse_qsl(text, keep_blank_values=True, errors="strict")
        except (UnicodeDecodeError, ValueError):
            raise errors.BadRequest("Query string is not UTF-8 encoded") from None
        if "\x00" in text or "%00" in text:
            raise errors.BadRequest("Query string has a NUL character, which no value may have")
        for name, value in pairs:
            query.setdefault(name, []).append(value)
        _check_numbers(query)
    return query


def _check_numbers(query: dict[str, list[str]]) -> None:
    """Refuses more parameters or values than any client needs: each becomes a part of a query of databases."""
    if len(query) > MOST_PARAMETERS:
        raise errors.BadRequest(
            f"The query has {len(query)} different parameters; at most {MOST_PARAMETERS} are accepted. Leave some out."
        )
    for name, values in query.items():
        if (given := sum(value.count(",") + 1 for value in values)) > MOST_VALUES and (
            len(values) > MOST_VALUES or name in LISTS
        ):
            raise errors.BadRequest(
                f"The query parameter {name[:_MOST_SHOWN]} has {given} values; at most {MOST_VALUES} are accepted. Ask in"
                " several requests."
            )


def _different(name: str, values: list[str]) -> list[str]:
    """The values without those that are repeated. The last one stays the last: it counts where only one does."""
    if name in PAIRED or len(values) < 2:
        return values
    return list(dict.fromkeys(reversed(values)))[::-1]


def _read_body(req: falcon.Request) -> Any:
    """The decoded JSON, or None if there is no body."""
    length = req.content_length
    if length and length > MAX_BODY_BYTES:
        raise BodyTooLarge(f"Request is too large: a body may have at most {MAX_BODY_BYTES} bytes.")
    try:
        data = stream_of(req).read(MAX_BODY_BYTES + 1)
    except BrokenBody as error:
        raise errors.BadRequest(str(error)) from error
    if len(data) > MAX_BODY_BYTES:
        raise BodyTooLarge(f"Request is too large: a body may have at most {MAX_BODY_BYTES} bytes.")
    if not data:
        return None
    if b"\\u0000" in data:
        # PostgreSQL can't keep it, and nothing needs it.
        raise errors.BadRequest("Malformed request body: it has a NUL character")
    content_type = (req.content_type or "application/json").partition(";")[0].strip().lower()
    if content_type not in JSON_TYPES:
        raise errors.UnsupportedMediaType(f"Unsupported Content-Type: {content_type}; application/json is expected.")
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise errors.BadRequest("Malformed request body") from None


class BodyTooLarge(errors.CausewayError):
    status, code = 413, "body_too_large"


def _choose(routes: list[Route], minor: int, body: Any) -> Route:
    if routes[0].action is not None:
        if not isinstance(body, dict):
            raise errors.BadRequest("Malformed request body")
        if len(body) != 1:
            raise errors.BadRequest("Malformed request body: it must have one key, which names the action")
        (action,) = body
        routes = [route for route in routes if route.action == action]
        if not routes:
            raise errors.BadRequest(f"There is no such action: {action}")
    for route in routes:
        if route.serves(minor):
            return route
    raise errors.NotFound(faults.NOT_FOUND)
