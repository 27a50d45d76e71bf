"""gunicorn with an application of ours: what ``causeway api`` and ``causeway metadata`` run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from shutil import rmtree
from typing import Any

from gunicorn.app.base import BaseApplication
from oslo_config import cfg
from prometheus_client.multiprocess import mark_process_dead

from causeway.api.long_polls import LONG_POLLS, LongPolls
from causeway.cli import databases, processes
from causeway.cli.api_worker import Worker
from causeway.cli.ready import freeze_what_stays, say_ready
from causeway.clients.session import ServiceSessions
from causeway.http.server import KEEP
from causeway.http.strict import WsgiApp, strict
from causeway.metrics import folders
from causeway.metrics.endpoint import count_into_files
from causeway.roles.web import make_api_app, make_metadata_app

# Seconds that a worker has to finish its requests when it ends.
GRACE_SECONDS = 60


class WebProcesses(BaseApplication):  # type: ignore[misc]
    """Serves an application in worker processes. What has threads or connections is made in them, after the fork."""

    role = ""

    def __init__(self, conf: cfg.ConfigOpts, notes: Sequence[str], *, bind: str, workers: int, threads: int) -> None:
        """``notes``: what is said beside "ready"."""
        self._conf, self._notes = conf, notes
        self._cleanup = ExitStack()
        #: where the workers count. Only `_on_exit` deletes it: other clean-ups of the master would also run in its forks.
        self._counts: Path | None = None
        self._settings: dict[str, Any] = {
            "bind": bind,
            "workers": workers,
            "threads": threads,
            "worker_class": Worker,
            "proc_name": f"causeway-{self.role}",
            "graceful_timeout": GRACE_SECONDS,
            # gunicorn's default, two seconds, is also the time between two requests of clients that wait for a server:
            # their connection would be closed just when they ask.
            "keepalive": KEEP,
            "control_socket_disable": True,
            "when_ready": self._ready,
            "post_worker_init": self._worker_ready,
            "worker_exit": self._worker_exit,
            "child_exit": self._child_exit,
            "on_exit": self._on_exit,
        }
        super().__init__()

    def serve(self) -> None:
        """Serves until a signal ends it."""
        if self._conf.metrics.enabled:
            self._counts = folders.make()
            count_into_files(self._counts)
        self.run()

    @abstractmethod
    def application(self, cleanup: ExitStack) -> WsgiApp:
        """The application, made in a worker. ``cleanup`` gets what closes everything again."""

    def load_config(self) -> None:
        for name, value in self._settings.items():
            self.cfg.set(name, value)

    def load(self) -> Callable[..., Any]:
        application = self.application(self._cleanup)
        processes.expose_metrics(self._conf, self._cleanup, shared=True)
        freeze_what_stays()
        return strict(application)

    def _worker_ready(self, worker: Any) -> None:
        pass

    def _ready(self, server: Any) -> None:
        say_ready(f"{self.role} {', '.join(str(listener) for listener in server.LISTENERS)}", self._notes)

    def _on_exit(self, _server: Any) -> None:
        if self._counts is not None:
            rmtree(self._counts, ignore_errors=True)

    def _child_exit(self, _server: Any, worker: Any) -> None:
        """In the master: what a worker held is held by nobody any more, however it ended."""
        if self._counts is not None:
            mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]

    def _worker_exit(self, _server: Any, _worker: Any) -> None:
        self._cleanup.close()


class ApiProcesses(WebProcesses):
    """The Compute API."""

    role = "api"

    def __init__(self, conf: cfg.ConfigOpts, notes: Sequence[str], *, bind: str, workers: int, threads: int) -> None:
        self._long_polls = LongPolls(max(1, round(threads * LONG_POLLS)))
        super().__init__(conf, notes, bind=bind, workers=workers, threads=threads)

    def application(self, cleanup: ExitStack) -> WsgiApp:
        around = processes.around(self._conf, cleanup)
        database, cells = databases.api_and_cells(self._conf, cleanup, is_known=True)
        return make_api_app(around, database, cells, self._conf.host, self._long_polls)

    def _worker_ready(self, worker: Any) -> None:
        self._long_polls.is_over = lambda: not worker.alive


class MetadataProcesses(WebProcesses):
    """The metadata service."""

    role = "metadata"

    def application(self, cleanup: ExitStack) -> WsgiApp:
        sessions = ServiceSessions(self._conf)
        cleanup.callback(sessions.close)
        database, cells = databases.api_and_cells(self._conf, cleanup, is_known=True)
        return make_metadata_app(sessions, database, cells)
