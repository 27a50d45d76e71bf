"""The metadata service as a WSGI application.

Guests get text, or the JSON of a file; errors are a line of text. Paths without a prefix belong to the EC2 tree.
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, TypeVar

import falcon

from causeway import errors
from causeway.context import RequestContext
from causeway.guest_data import ec2, openstack, versions
from causeway.http.body import stream_of
from causeway.http.strict import BrokenBody
from causeway.metadata import password
from causeway.metadata.callers import Caller, caller_of, check_options
from causeway.metadata.lookup import Lookup
from causeway.metadata.services import MetadataServices
from causeway.model.guest_password import MOST_BYTES

LOG = logging.getLogger(__name__)

T = TypeVar("T")

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

NOT_FOUND = "There is nothing here."


@dataclass(frozen=True)
class Answer:
    body: bytes
    is_json: bool = False


def build_app(services: MetadataServices) -> falcon.App[Any, Any]:
    """The application. Raises Misconfigured."""
    check_options(services.conf)
    guests = Guests(services)
    app: falcon.App[Any, Any] = falcon.App(middleware=[_PlainPath()])
    app.req_options.auto_parse_form_urlencoded = False
    for path, responders in guests.routes().items():
        app.add_route(path, _Resource(path, responders))
    # All other paths belong to the EC2 tree.
    app.add_sink(_Resource("ec2", {"GET": guests.ec2_item}).on_any, "/")
    app.add_error_handler(falcon.HTTPError, _refused)
    return app


class Guests:
    """What guests may ask for, method by method. The parts of a path come as arguments."""

    def __init__(self, services: MetadataServices) -> None:
        self._services = services
        self._lookup = Lookup(services)

    def routes(self) -> dict[str, dict[str, Callable[..., Answer]]]:
        """The route table."""
        version = "/openstack/{version}"
        return {
            "/": {"GET": self.ec2_versions},
            "/openstack": {"GET": self.openstack_versions},
            "/openstack/content/{name}": {"GET": self.content},
            version: {"GET": self.openstack_files},
            version + "/password": {"GET": self.show_password, "POST": self.post_password},
            version + "/{name}": {"GET": self.openstack_file},
        }

    def ec2_versions(self, _request: falcon.Request) -> Answer:
        """For all callers, as in Nova."""
        return _lines(versions.listed_ec2_versions())

    def openstack_versions(self, request: falcon.Request) -> Answer:
        self._lookup.home(self._caller(request))
        return _lines(versions.listed_openstack_versions(datetime.now(UTC).date()))

    def openstack_files(self, request: falcon.Request, version: str) -> Answer:
        facts = self._lookup.facts(self._caller(request))
        return _lines(openstack.names(facts, _known(versions.openstack_version(version))))

    def openstack_file(self, request: falcon.Request, version: str, name: str) -> Answer:
        facts = self._lookup.facts(self._caller(request))
        content = openstack.read(facts, _known(versions.openstack_version(version)), name)
        return Answer(_known(content), is_json=name.endswith(".json"))

    def content(self, request: falcon.Request, name: str) -> Answer:
        """A personality file."""
        return Answer(_known(self._lookup.facts(self._caller(request)).contents.get(name)))

    def ec2_item(self, request: falcon.Request) -> Answer:
        caller = self._caller(request)
        path = [part for part in request.path.split("/") if part]
        if path[:1] == ["ec2"]:
            path = path[1:]
        if not path:
            self._lookup.home(caller)
            return self.ec2_versions(request)
        version = _known(versions.ec2_version(path[0]))
        node: ec2.Node | None = ec2.find(ec2.tree(self._lookup.facts(caller), version), path[1:])
        if node is None:
            raise errors.NotFound(NOT_FOUND)
        return Answer(ec2.shown(node))

    def show_password(self, request: falcon.Request, version: str) -> Answer:
        caller, home = self._of_password(request, version)
        return Answer(password.show(self._services.cells, caller.server_id, home).encode())

    def post_password(self, request: falcon.Request, version: str) -> Answer:
        caller, home = self._of_password(request, version)
        if (request.content_length or 0) > MOST_BYTES:
            raise errors.BadRequest("Request is too large.")
        posted = stream_of(request).read(MOST_BYTES + 1)
        password.keep(self._services.cells, caller.server_id, home, posted)
        return Answer(b"")

    def _of_password(self, request: falcon.Request, version: str) -> tuple[Caller, str]:
        caller = self._caller(request)
        if _known(versions.openstack_version(version)) < versions.FILES[versions.PASSWORD]:
            raise errors.NotFound(NOT_FOUND)
        return caller, self._lookup.home(caller)

    def _caller(self, request: falcon.Request) -> Caller:
        return caller_of(self._services.conf, self._services.network, request.headers, request.remote_addr)


class _PlainPath:
    """Falcon middleware: normalizes paths, since guests write slashes at their end, or two in a row."""

    def process_request(self, req: falcon.Request, _resp: falcon.Response) -> None:
        req.path = posixpath.normpath("/" + req.path.lstrip("/"))


class _Resource:
    """One path; Falcon calls ``on_<method>``."""

    def __init__(self, label: str, responders: dict[str, Callable[..., Answer]]) -> None:
        self._label = label
        self._responders = responders
        for method in METHODS:
            setattr(self, f"on_{method.lower()}", self.on_any)

    def on_any(self, req: falcon.Request, resp: falcon.Response, **parts: str) -> None:
        # From here on, log lines of this thread belong to this request.
        RequestContext()
        began = perf_counter()
        responder = self._responders.get("GET" if req.method == "HEAD" else req.method)
        try:
            if responder is None:
                # As in Nova: Neutron's agent does not pass on a 405.
                raise errors.BadRequest(f"{' and '.join(self._responders)} only.")
            answer = responder(req, **parts)
        except Exception as failure:  # noqa: BLE001 - every failure becomes an answer; unexpected ones are logged
            resp.status, resp.text = _of_error(failure, f"{req.method} {self._label}")
            resp.content_type = falcon.MEDIA_TEXT
        else:
            resp.data = answer.body
            resp.content_type = falcon.MEDIA_JSON if answer.is_json else _text_type(answer.body)
        LOG.debug("%s %s: %s in %.3f s", req.method, req.path, resp.status, perf_counter() - began)


def _text_type(body: bytes) -> str:
    """The content type, with a charset that can decode the body: the agent decodes it and encodes it again."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return "text/plain; charset=iso-8859-1"
    return falcon.MEDIA_TEXT


def _of_error(failure: Exception, what: str) -> tuple[str, str]:
    """(status, text) of the answer, without any details of the cloud."""
    if isinstance(failure, errors.CausewayError) and failure.status < 500:
        return falcon.code_to_http_status(failure.status), NOT_FOUND if failure.status == 404 else failure.message
    if isinstance(failure, BrokenBody):
        return falcon.HTTP_400, "The body broke off."
    if isinstance(failure, errors.CausewayError):
        LOG.log(failure.log_level, "%s failed: %s %s", what, failure.message, failure.details)
        return falcon.code_to_http_status(
            failure.status
        ), "The metadata service can't answer this now. Try again later."
    LOG.error("%s failed unexpectedly", what, exc_info=failure)
    return falcon.HTTP_500, "An unknown error has occurred. Please try your request again."


def _refused(_req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError, _parts: Any) -> None:
    """Answers what Falcon itself refuses."""
    resp.status, resp.text, resp.content_type = error.status, NOT_FOUND, falcon.MEDIA_TEXT
    if error.status_code != 404:
        resp.text = str(error.status)


def _known(found: T | None) -> T:
    """What was found; raises NotFound for None."""
    if found is None:
        raise errors.NotFound(NOT_FOUND)
    return found


def _lines(lines: list[str]) -> Answer:
    return Answer("\n".join(lines).encode())


__all__ = ["MetadataServices", "build_app"]
