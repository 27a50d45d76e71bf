"""Unified limits of projects, read from the identity service through oslo.limit.

Answers are not cached, so a changed limit is in force with the next request. Each read costs two calls. The endpoint that the
limits belong to (its service and region) is looked up once, and again after a failure or ten minutes.
"""

from __future__ import annotations

import importlib.util
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from keystoneauth1 import exceptions as keystone_errors
from oslo_config.cfg import ConfigOpts

from causeway import errors
from causeway.clients.connections import calls

LOG = logging.getLogger(__name__)

ENDPOINT_KEPT_SECONDS = 600.0


@dataclass(frozen=True)
class Limits:
    """Resource -> limit; below 0 means no limit. ``registered``: for every project; ``own``: for the project in question."""

    registered: dict[str, int] = field(default_factory=dict)
    own: dict[str, int] = field(default_factory=dict)

    def get(self, resource: str) -> int | None:
        """The limit that applies to the project; None if none is set."""
        return self.own.get(resource, self.registered.get(resource))


class LimitsClient:
    """Safe to use from many threads."""

    def __init__(self, conf: ConfigOpts) -> None:
        self._conf = conf
        self._lock = threading.Lock()
        self._library: ModuleType | None = None
        self._enforcer: Any = None
        self._made_at = 0.0

    def of_project(self, project_id: str | None) -> Limits:
        """Every limit of a project. ``project_id`` None: only the limits that are registered for all.

        Raises ServiceFailed if the identity service doesn't answer, refuses, or has limits that can't be understood.
        """
        try:
            enforcer = self._find_enforcer()
            registered = _counted("/v3/registered_limits", lambda: enforcer.get_registered_limits(None))
            own = _counted("/v3/limits", lambda: enforcer.get_project_limits(project_id, None)) if project_id else []
        except Exception as error:
            with self._lock:
                self._enforcer = None
            raise _translated(error) from error
        return Limits(dict(registered), dict(own))

    def _find_enforcer(self) -> Any:
        with self._lock:
            if self._enforcer is None or time.monotonic() - self._made_at > ENDPOINT_KEPT_SECONDS:
                if self._library is None:
                    self._library = _library_for(self._conf)
                # Read the limits without the library, which does not show which of them are not set.
                self._enforcer = self._library.Enforcer(lambda *_: {}, cache=False)
                self._made_at = time.monotonic()
            return self._enforcer


def _library_for(conf: ConfigOpts) -> ModuleType:
    """oslo.limit for one configuration.

    The library keeps its options and its connection in module variables, but one of our processes may hold several clouds. So
    every configuration gets a copy of the module.
    """
    spec = importlib.util.find_spec("oslo_limit.limit")
    if spec is None or spec.loader is None:
        raise errors.Misconfigured(
            "[quota] driver asks for unified limits, and the library oslo.limit is not installed."
        )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.CONF = conf  # type: ignore[attr-defined]
    return module


def _counted(route: str, call: Callable[[], Any]) -> Any:
    key = f"identity GET {route}"
    calls.count(key)
    if calls.before is not None:
        calls.before(key)
    answer = call()
    if calls.after is not None:
        calls.after(key)
    return answer


def _translated(error: Exception) -> errors.CausewayError:
    if isinstance(error, errors.CausewayError):
        return error
    # The library raises many kinds of errors: for bad options (ValueError), for models that it does not know, and others.
    details = f"{type(error).__name__}: {error}"
    if not isinstance(error, keystone_errors.ClientException):
        details += "; see [oslo_limit]"
    LOG.warning("The limits of the identity service can't be read: %s", details)
    return errors.ServiceFailed(
        "The identity service did not say what the limits are. Try again later.", details=details
    )
