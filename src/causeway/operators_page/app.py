"""The console as a WSGI application: pages, the events of those that change, and forms."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any
from uuid import UUID

import falcon

from causeway.openstack_plugin.asking import NotAsked, Refused
from causeway.operators_page import events, pages
from causeway.operators_page.cloud import DRAIN_ACTIONS, SERVER_ACTIONS, Cloud
from causeway.operators_page.pages import Page
from causeway.operators_page.sessions import HEADERS, Sessions, cookie_name, is_loopback

STATIC = {"console.css": "text/css", "console.js": "text/javascript", "icon.svg": "image/svg+xml"}
FAILURE = "failure.html.j2"
# The navigation, and what is only there if something was imported from Nova.
LINKS = (("Cells", "/"), ("Drains", "/drains"), ("Operations", "/operations"), ("Audit", "/audit"))
ADOPTION = ("Taking over", "/adoption")
# Long enough for any form of ours.
LONGEST_FORM = 4096


class Guard:
    """Refuses requests without a session, under another name than this machine's, and forms of other sites."""

    def __init__(self, sessions: Sessions, prefix: str) -> None:
        self._sessions = sessions
        self._prefix = prefix

    def process_request(self, request: falcon.Request, response: falcon.Response) -> None:
        for name, value in HEADERS.items():
            response.set_header(name, value)
        if not is_loopback(request.get_header("Host")):
            raise falcon.HTTPForbidden(description="The console only answers under the name of this machine.")
        if request.path in ("/enter", *(f"/static/{name}" for name in STATIC)):
            return
        _empty, place, rest = [*request.path.split("/", 2), ""][:3]
        session = self._sessions.session(request.get_header("Cookie"), place, request.get_header("Host"))
        if session is None:
            raise falcon.HTTPUnauthorized(
                description="Open the console with the URL that its command printed. It opens once: start the command again."
            )
        request.context.session = session
        # Where this session's pages are: what links begin with. The rest of the path is what is routed.
        request.context.root = f"{self._prefix}/{place}"
        request.path = f"/{rest}"
        if request.method == "POST":
            self._check_form(request, session)

    def _check_form(self, request: falcon.Request, session: str) -> None:
        origin = request.get_header("Origin")
        own = f"{request.scheme}://{request.get_header('Host')}"
        if origin not in (None, own) or (request.content_length or 0) > LONGEST_FORM:
            raise falcon.HTTPForbidden(description="This form is not the console's.")
        is_form = (request.content_type or "").startswith(falcon.MEDIA_URLENCODED) and request.content_length
        form = request.get_media() if is_form else {}
        if not self._sessions.is_own_form(session, form.get("secret")):
            raise falcon.HTTPForbidden(
                description="This form is not the console's, or it is of an earlier run. Load the page again."
            )


class Console:
    """``prefix``: the path that it is mounted at."""

    def __init__(self, cloud: Cloud, sessions: Sessions, prefix: str = "") -> None:
        self.stopping = threading.Event()
        self._cloud = cloud
        self._sessions = sessions
        self._prefix = prefix
        self._templates = pages.environment()
        self._is_imported = False
        self.app = falcon.App(middleware=[Guard(sessions, prefix)])
        self.app.resp_options.xml_error_serialization = False
        self.app.add_error_handler(NotAsked, self._not_asked)
        self.app.add_error_handler(falcon.HTTPError, self._failed)
        self.app.add_route("/enter", _EnterResource(sessions, prefix))
        self.app.add_route("/static/{name}", _StaticResource())
        for path, make in self._pages().items():
            self.app.add_route(path, _PageResource(self, make))
            self.app.add_route(f"/events{path.rstrip('/')}", _EventsResource(self, make))
        self.app.add_route("/servers/{identity}/console", _ConsoleResource(cloud))
        for kind in ("drains", "operations", "servers"):
            self.app.add_route(f"/{kind}/{{identity}}/{{action}}", _ActionResource(self, kind))

    def _pages(self) -> dict[str, Callable[..., Page]]:
        cloud = self._cloud
        return {
            "/": lambda _request: pages.overview(cloud),
            "/drains": lambda _request: pages.drains(cloud),
            "/drains/{identity}": lambda _request, identity: pages.drain(
                cloud, _uuid(identity), datetime.now(UTC).replace(tzinfo=None)
            ),
            "/operations": lambda _request: pages.operations(cloud),
            "/operations/{identity}": lambda _request, identity: pages.operation(cloud, _uuid(identity)),
            "/servers/{identity}": lambda _request, identity: pages.server(cloud, _uuid(identity)),
            "/servers/{identity}/explanation": lambda _request, identity: pages.explanation(cloud, _uuid(identity)),
            "/adoption": lambda _request: pages.adoption(cloud),
            "/audit": lambda request: pages.audit(cloud, wanted=request.get_param("look") == "1"),
        }

    def render(self, page: Page, request: falcon.Request, path: str, *, whole: bool) -> str:
        """A page, or only its main part."""
        template = self._templates.get_template(page.template if not whole else "page.html.j2")
        return template.render(
            page.data
            | {
                "page": page,
                "static": f"{self._prefix}/static",
                "links": self._links(page) if whole else (),
                "prefix": getattr(request.context, "root", self._prefix),
                "path": path,
                "secret": self._sessions.secret(getattr(request.context, "session", "")),
            }
        )

    def _links(self, page: Page) -> list[tuple[str, str]]:
        """The navigation: names and paths. A cloud that did not answer just now is not asked what belongs there."""
        if page.template != FAILURE:
            with suppress(NotAsked):
                self._is_imported = self._cloud.is_imported()
        return [*LINKS, *([ADOPTION] if self._is_imported else [])]

    def act(self, kind: str, identity: str, action: str) -> None:
        """Does what a form asks for. Raises HTTPNotFound if there is no such action."""
        if kind == "drains" and action in DRAIN_ACTIONS:
            self._cloud.act_on_drain(identity, action)
        elif kind == "servers" and action in SERVER_ACTIONS:
            self._cloud.act_on_server(identity, action)
        elif kind == "operations" and action == "cancel":
            self._cloud.cancel_operation(identity)
        else:
            raise falcon.HTTPNotFound(description=f"There is no action {action} of {kind}.")

    def _not_asked(
        self, request: falcon.Request, response: falcon.Response, failure: NotAsked, _parameters: dict[str, Any]
    ) -> None:
        status = failure.status if isinstance(failure, Refused) else 503
        message = failure.message if isinstance(failure, Refused) else str(failure)
        self._show_failure(request, response, status, message)

    def _failed(
        self, request: falcon.Request, response: falcon.Response, failure: falcon.HTTPError, _parameters: dict[str, Any]
    ) -> None:
        self._show_failure(request, response, failure.status_code, failure.description or failure.title or "")

    def _show_failure(self, request: falcon.Request, response: falcon.Response, status: int, message: str) -> None:
        page = Page(FAILURE, "This did not work", {"message": message, "status": status}, is_live=False)
        response.status = status
        response.content_type = "text/html"
        response.text = self.render(page, request, request.path, whole=True)


class _EnterResource:
    def __init__(self, sessions: Sessions, prefix: str) -> None:
        self._sessions = sessions
        self._prefix = prefix

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Makes a session for a token."""
        session = self._sessions.enter(request.get_param("token") or "")
        if session is None:
            raise falcon.HTTPUnauthorized(description="This token is wrong or was used: start the command again.")
        root = f"{self._prefix}/{self._sessions.place(session)}"
        # The browser sends it only below the secret path, and not with requests from other sites.
        response.set_cookie(
            cookie_name(request.get_header("Host")),
            session,
            path=root,
            http_only=True,
            same_site="Strict",
            secure=request.scheme == "https",
        )
        response.status = falcon.HTTP_303
        response.location = f"{root}/"


class _StaticResource:
    def on_get(self, request: falcon.Request, response: falcon.Response, name: str) -> None:  # noqa: ARG002
        if name not in STATIC:
            raise falcon.HTTPNotFound
        response.content_type = STATIC[name]
        response.data = files("causeway.operators_page").joinpath("static", name).read_bytes()


class _PageResource:
    def __init__(self, console: Console, make: Callable[..., Page]) -> None:
        self._console = console
        self._make = make

    def on_get(self, request: falcon.Request, response: falcon.Response, **parameters: str) -> None:
        page = self._make(request, **parameters)
        response.content_type = "text/html"
        response.text = self._console.render(page, request, request.path, whole=True)


class _EventsResource:
    def __init__(self, console: Console, make: Callable[..., Page]) -> None:
        self._console = console
        self._make = make

    def on_get(self, request: falcon.Request, response: falcon.Response, **parameters: str) -> None:
        path = request.path.removeprefix("/events") or "/"

        def make() -> str:
            try:
                page = self._make(request, **parameters)
            except NotAsked as failure:
                page = Page(FAILURE, "", {"message": str(failure), "status": 503})
            return self._console.render(page, request, path, whole=False)

        response.content_type = "text/event-stream"
        response.stream = events.stream(make, self._console.stopping)


class _ConsoleResource:
    """Redirects to the console of a server, each time with a new token. It is a link, so it needs no form's secret."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def on_get(self, request: falcon.Request, response: falcon.Response, identity: str) -> None:  # noqa: ARG002
        response.status = falcon.HTTP_303
        response.location = self._cloud.console_url(_uuid(identity))


class _ActionResource:
    """An action: GET asks the question before it, POST does it."""

    def __init__(self, console: Console, kind: str) -> None:
        self._console = console
        self._kind = kind

    def on_get(self, request: falcon.Request, response: falcon.Response, identity: str, action: str) -> None:
        page = pages.question(self._kind, _uuid(identity), action)
        if page is None:
            raise falcon.HTTPNotFound(description=f"There is no page {request.path}.")
        response.content_type = "text/html"
        response.text = self._console.render(page, request, request.path, whole=True)

    def on_post(self, request: falcon.Request, response: falcon.Response, identity: str, action: str) -> None:  # noqa: ARG002
        self._console.act(self._kind, _uuid(identity), action)
        raise falcon.HTTPSeeOther(f"{request.context.root}/{self._kind}/{identity}")


def _uuid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise falcon.HTTPNotFound(description=f"There is nothing with the id {text}.") from None
