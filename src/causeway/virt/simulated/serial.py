"""Serial consoles of simulated guests: a TCP port for each guest, as a hypervisor has.

Whoever connects is sent what the guest wrote before, and then what it writes. The guest echoes what is typed, to everybody and to
its log. The port listens from the moment somebody asks for the console until the guest's definition is deleted.
"""

from __future__ import annotations

import codecs
import logging
import socket
import struct
import threading
from contextlib import suppress

from causeway.model.states import PowerState
from causeway.virt.simulated.host_files import CONSOLE, HostFiles

LOG = logging.getLogger(__name__)

# Bytes of the log that are sent first; connections to a guest at most; seconds for a connection to take what it is sent.
_TAIL, _MOST, _SEND_SECONDS = 64 * 1024, 16, 10


class SerialConsoles:
    """The serial consoles of one host's guests."""

    def __init__(self, files: HostFiles, address: str) -> None:
        self._files = files
        self.address = address
        self._lock = threading.Lock()
        self._consoles: dict[str, _Console] = {}
        files.on_undefined = self._end

    def port_of(self, uuid: str) -> int:
        """The port at which the console of a guest listens."""
        with self._lock:
            if uuid not in self._consoles:
                self._consoles[uuid] = _Console(self._files, uuid, self.address)
            return self._consoles[uuid].port

    def close(self) -> None:
        """Ends all connections."""
        with self._lock:
            consoles, self._consoles = list(self._consoles.values()), {}
        for console in consoles:
            console.end()

    def _end(self, uuid: str) -> None:
        with self._lock:
            console = self._consoles.pop(uuid, None)
        if console is not None:
            console.end()


class _Console:
    """The port of one guest, and its connections."""

    def __init__(self, files: HostFiles, uuid: str, address: str) -> None:
        self._files, self._uuid = files, uuid
        self._log = files.disks(uuid) / CONSOLE
        self._lock = threading.Lock()
        self._is_over = False
        self._visitors: set[socket.socket] = set()
        self._listener = socket.create_server((address, 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._listen, name=f"serial-{uuid}", daemon=True).start()

    def end(self) -> None:
        with self._lock:
            self._is_over = True
            for each in (self._listener, *self._visitors):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
        self._files.wake_readers()

    def _listen(self) -> None:
        with self._listener:
            while True:
                try:
                    visitor, _ = self._listener.accept()
                except OSError:
                    # The console has ended.
                    return
                with self._lock:
                    if self._is_over or len(self._visitors) >= _MOST:
                        visitor.close()
                        continue
                    self._visitors.add(visitor)
                for work in (self._take, self._show):
                    threading.Thread(target=work, args=(visitor,), name=f"serial-{self._uuid}", daemon=True).start()

    def _take(self, visitor: socket.socket) -> None:
        """Takes what a visitor types, until the visitor disconnects or the console ends."""
        text = codecs.getincrementaldecoder("utf-8")("replace")
        with visitor:
            with suppress(OSError):
                while data := visitor.recv(4096):
                    self._echo(text.decode(data).replace("\r\n", "\n").replace("\r", "\n"))
            with self._lock:
                self._visitors.discard(visitor)
        self._files.wake_readers()

    def _echo(self, typed: str) -> None:
        with self._files.locked(self._uuid):
            guest = self._files.guests.get(self._uuid)
            if guest is not None and guest.power_state is PowerState.RUNNING:
                self._files.append_to_console(self._uuid, typed)

    def _show(self, visitor: socket.socket) -> None:
        """Sends a visitor what the guest wrote and writes."""

        def has_gone() -> bool:
            return self._is_over or visitor not in self._visitors

        sent = max(0, self._written() - _TAIL)
        try:
            visitor.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_SECONDS, 0))
            while True:
                self._files.wait_for_console(lambda shown=sent: has_gone() or self._written() != shown)  # type: ignore[misc]
                if has_gone():
                    return
                # A log that is shorter than what was sent is a new one: the guest was made again.
                sent = min(sent, self._written())
                with self._log.open("rb") as log:
                    log.seek(sent)
                    new = log.read(_TAIL)
                visitor.sendall(new.replace(b"\n", b"\r\n"))
                sent += len(new)
        except OSError as failure:
            LOG.debug("A serial console of guest %s ends: %s", self._uuid, failure)
            with suppress(OSError):
                visitor.shutdown(socket.SHUT_RDWR)

    def _written(self) -> int:
        try:
            return self._log.stat().st_size
        except FileNotFoundError:
            return 0
