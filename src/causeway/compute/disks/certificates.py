"""The certificates by which hosts prove to each other who they are, before disks go from one to the other.

They are in one folder, under the names that QEMU uses for live migration, so one set of files can serve both.
"""

from __future__ import annotations

import logging
import ssl
import threading
from pathlib import Path
from typing import NoReturn

from causeway.errors import Misconfigured

LOG = logging.getLogger(__name__)

AUTHORITY, SERVER, SERVER_KEY = "ca-cert.pem", "server-cert.pem", "server-key.pem"
CLIENT, CLIENT_KEY = "client-cert.pem", "client-key.pem"
NAMES = (AUTHORITY, SERVER, SERVER_KEY, CLIENT, CLIENT_KEY)

_Stamps = tuple[tuple[int, int, int], ...]


class Certificates:
    """The certificates of one host."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._loaded: ssl.SSLContext | None = None
        self._stamps: _Stamps = ()

    def check(self, address: str) -> None:
        """Raises Misconfigured unless this host, as a client, could fetch from itself, as the server at ``address``."""
        for name in NAMES:
            try:
                (self._folder / name).read_bytes()
            except OSError as unreadable:
                raise self._unusable(f"{name} can't be read: {unreadable.strerror}") from unreadable
        try:
            client_refused, refusal = _shake_hands(self.client_context(), _server_context(self._folder), address)
        except (OSError, ValueError) as unusable:
            raise self._unusable(str(unusable)) from unusable
        if refusal is not None:
            why = getattr(refusal, "verify_message", None) or str(refusal)
            refused = (
                f"{SERVER} as that of a server at {address} (my_ip)" if client_refused else f"{CLIENT} as a client's"
            )
            raise self._unusable(f"{AUTHORITY} does not accept {refused}: {why}") from refusal

    def server_context(self) -> ssl.SSLContext:
        """The context for a client's next connection. Raises OSError if no certificates can be read now, and none were before."""
        with self._lock:
            stamps = self._now()
            if self._loaded is None or stamps != self._stamps:
                try:
                    self._loaded = _server_context(self._folder)
                except (OSError, ValueError) as failure:
                    if self._loaded is None:
                        raise
                    # Perhaps somebody is replacing them, and only some are new so far.
                    LOG.warning("New certificates in %s can't be used, the former ones are: %s", self._folder, failure)
                self._stamps = stamps
            return self._loaded

    def client_context(self) -> ssl.SSLContext:
        """The context for fetching from another host. Raises OSError."""
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=self._folder / AUTHORITY)
        return _with_certificate(context, self._folder / CLIENT, self._folder / CLIENT_KEY)

    def _now(self) -> _Stamps:
        try:
            found = [(self._folder / name).stat() for name in NAMES]
        except OSError:
            return ()
        return tuple((each.st_mtime_ns, each.st_size, each.st_ino) for each in found)

    def _unusable(self, why: str) -> Misconfigured:
        return Misconfigured(
            f"The certificates in {self._folder} can't be used: {why}. Put them in order, or set [DEFAULT] disk_transfer_tls"
            " to off; disk_transfer_pki_dir names the folder."
        )


def _server_context(folder: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=folder / AUTHORITY)
    context.verify_mode = ssl.CERT_REQUIRED
    # Without session tickets, every connection shows the client's certificate.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    return _with_certificate(context, folder / SERVER, folder / SERVER_KEY)


def _with_certificate(context: ssl.SSLContext, certificate: Path, key: Path) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key, password=_no_passphrase)
    return context


def _no_passphrase() -> NoReturn:
    """Without this function, OpenSSL asks for a passphrase at the terminal."""
    raise ValueError("a key has a passphrase, which is not supported")


def _shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, address: str) -> tuple[bool, ssl.SSLError | None]:
    """A handshake in memory: whether the client refused, and why one of them did (None: neither)."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server, server_hostname=address)
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = [asking, answering]
    while waiting:
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as failure:
                return side is asking, failure
    return False, None
