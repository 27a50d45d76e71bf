"""Listens at 169.254.169.254 in the lab's networks, beside each DHCP server, for the metadata service.

This process listens: a socket stays in the network namespace in which it was made, whichever thread uses it.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from causeway.errors import GuestFailed
from causeway.http.server import make_server
from causeway.http.strict import WsgiApp
from causeway.virt.libvirt.commands import run

ADDRESS, PORT, THREADS = "169.254.169.254", 80, 4
_NAMESPACES = Path("/run/netns")
_CLONE_NEWNET = 0x40000000


@dataclass
class _Listener:
    server: Any
    thread: threading.Thread
    # Of the namespace in which it listens: a new one may have the same name.
    inode: int


class MetadataListeners:
    """A listener for each network. ``application(network_id)`` makes the WSGI application that answers its guests."""

    def __init__(self, application: Callable[[str], WsgiApp]) -> None:
        self._application = application
        self._listeners: dict[str, _Listener] = {}
        self._lock = threading.Lock()

    def sync(self, namespaces: dict[str, str]) -> None:
        """Listens in these networks and in no others. ``namespaces``: network id -> the namespace of its DHCP server."""
        with self._lock:
            for network_id in self._listeners.keys() - namespaces.keys():
                self._stop(network_id)
            for network_id, namespace in namespaces.items():
                # Also if it listens already: a restarted DHCP server has a new interface.
                run("ip", "-n", namespace, "addr", "replace", f"{ADDRESS}/32", "dev", "dhcp0")
                inode = (_NAMESPACES / namespace).stat().st_ino
                listener = self._listeners.get(network_id)
                if listener is not None and listener.inode == inode:
                    continue
                self._stop(network_id)
                self._listeners[network_id] = self._listen(network_id, namespace, inode)

    def stop(self) -> None:
        with self._lock:
            for network_id in list(self._listeners):
                self._stop(network_id)

    def _listen(self, network_id: str, namespace: str, inode: int) -> _Listener:
        def make() -> Any:
            _enter(namespace)
            everywhere = "0.0.0.0"  # noqa: S104  (in a namespace that has only the network)
            return make_server(everywhere, PORT, self._application(network_id), threads=THREADS, name="metadata")

        # In a thread of its own, because a thread that has entered a namespace stays there.
        with ThreadPoolExecutor(1) as pool:
            server = pool.submit(make).result()
        thread = threading.Thread(target=server.serve, name=f"metadata-{network_id[:11]}", daemon=True)
        thread.start()
        return _Listener(server, thread, inode)

    def _stop(self, network_id: str) -> None:
        listener = self._listeners.pop(network_id, None)
        if listener is not None:
            listener.server.stop()
            listener.thread.join()


def _enter(namespace: str) -> None:
    """Moves the calling thread, and no other, into a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle = os.open(_NAMESPACES / namespace, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(handle, _CLONE_NEWNET):
            number = ctypes.get_errno()
            raise GuestFailed(f"The namespace {namespace} can't be entered.", details=os.strerror(number))
    finally:
        os.close(handle)
