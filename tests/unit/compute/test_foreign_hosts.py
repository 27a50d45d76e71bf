"""What a compromised host says of its disks reaches no file, and no server, but those of the move."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from causeway import errors
from causeway.compute.disks.copies import Copies
from causeway.compute.disks.image_cache import ImageCache
from causeway.compute.handover import disk_fetch
from causeway.context import admin_context
from causeway.model.outcomes import DiskOffer, OfferedDisk, OperationToken
from causeway.model.warm import CopiedDisk, CopyRound
from causeway.virt.simulated import SimulatedDriver
from tests.unit.compute.transfers import MOVE, SERVER, Fetching

PATHS = ("../secret", "/etc/shadow", "..", ".", "", "a/b", "nul\0", "n" * 300, "é" * 200)


class NoImages:
    def download(self, *given: Any) -> None:
        raise AssertionError(f"downloads {given}")


@pytest.mark.parametrize("name", PATHS)
def test_a_base_image_is_no_path(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("of this host")
    cache = ImageCache(tmp_path / "_base", NoImages())  # type: ignore[arg-type]
    with pytest.raises(errors.DiskTransferFailed):
        cache.fetch(admin_context(), name)


@pytest.mark.parametrize(
    "disk",
    [
        *(CopiedDisk(name, 10, 1, 10, 1) for name in PATHS),
        CopiedDisk("disk", 10, 0, 10, 1),
        CopiedDisk("disk", -1, 1, 0, 1),
    ],
    ids=repr,
)
def test_a_disk_that_is_copied_is_no_path_and_has_a_size(tmp_path: Path, disk: CopiedDisk) -> None:
    copies = Copies(tmp_path / "copies", SimulatedDriver("host", tmp_path / "hypervisor"))
    token = OperationToken(MOVE, MOVE, 1, "step")
    with pytest.raises(errors.DiskTransferFailed):
        copies.begin(token, SERVER, CopyRound(1, None, "", "", [disk]))
    assert not list((tmp_path / "copies").iterdir())


@contextmanager
def redirecting(to: str) -> Iterator[str]:
    """A server that sends everybody to another URL; its own URL."""

    class Redirect(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", to)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_given: Any) -> None:
            """Not to the standard error."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Redirect) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_nobody_is_sent_elsewhere(tmp_path: Path) -> None:
    asked: list[str] = []

    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"data")

        def log_message(self, *_given: Any) -> None:
            """Not to the standard error."""

    target: Any = Fetching(SimpleNamespace(disk_transfer_tls="off", disk_transfer_patience=0))
    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as elsewhere:
        threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
        with redirecting(f"http://127.0.0.1:{elsewhere.server_port}/inside") as url:
            offer = DiskOffer(f"{url}/disks/{MOVE}", "secret", [OfferedDisk("disk", "qcow2", 4, "0" * 64)])
            with pytest.raises(errors.DiskTransferBroken):
                disk_fetch.fetch(target, offer, offer.disks[0], tmp_path / "disk", lambda _done: None)
        elsewhere.shutdown()
    assert asked == []
