"""Requests from host to host for offered disks: over HTTP or HTTPS, as ``disk_transfer_tls`` says."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

import requests

from causeway import errors
from causeway.compute.disks.certificates import AUTHORITY, CLIENT, CLIENT_KEY, Certificates
from causeway.compute.handover import offered_at
from causeway.compute.host import Host

_UPGRADE_REQUIRED = 426
# OpenSSL's reasons for errors in which one side refuses the other. All other errors mean that a connection broke.
_REFUSALS = re.compile(
    r"CERTIFICATE|UNKNOWN_CA|HANDSHAKE_FAILURE|ACCESS_DENIED|DECRYPT_ERROR|NO_SHARED_CIPHER"
    r"|WRONG_VERSION_NUMBER|PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL"
)


class Peer:
    """Another host, to which this one sends requests with the ``secret`` of an offer."""

    def __init__(self, host: Host, secret: str) -> None:
        """Raises HostNotTrusted if this host's certificates can't be used."""
        self._host = host
        self._session = session = requests.Session()
        # Traffic between hosts must not use the proxies of the environment.
        session.trust_env = False
        # Hosts send no redirects. A forged one could avoid TLS, or lead to something that only this host can reach.
        session.max_redirects = 0
        session.headers["Authorization"] = f"Bearer {secret}"
        if host.conf.disk_transfer_tls != "off":
            folder = Path(host.conf.disk_transfer_pki_dir)
            try:
                Certificates(folder).client_context()
            except (OSError, ValueError) as failure:
                raise self._not_trusted(f"its own certificates in {folder} can't be used: {failure}") from failure
            # The files are read again for each connection.
            session.verify, session.cert = str(folder / AUTHORITY), (str(folder / CLIENT), str(folder / CLIENT_KEY))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_why: object) -> None:
        self._session.close()

    def ask(
        self, method: str, url: str, *, headers: Mapping[str, str] | None = None, timeout: tuple[float, float]
    ) -> requests.Response:
        """Sends a request. Returns the answer before its body is read.

        Raises HostNotTrusted if one host refuses the other's certificate, DiskTransferFailed if no host offers anything at the
        URL, and the errors of `requests`.
        """
        url = offered_at.checked(url)
        if self._host.conf.disk_transfer_tls == "required":
            url = _encrypted(url)
        try:
            answer = self._send(method, url, headers, timeout)
            if answer.status_code == _UPGRADE_REQUIRED:
                # The other host began to require TLS after it had made its offer.
                answer.close()
                url = _encrypted(url)
                answer = self._send(method, url, headers, timeout)
        except requests.ConnectionError as failure:
            refusal = next((each for each in _ssl_errors_in(failure) if _REFUSALS.search(each.reason or "")), None)
            if refusal is None:
                raise
            raise self._not_trusted(f"{url}: {refusal}") from failure
        return answer

    def _send(
        self, method: str, url: str, headers: Mapping[str, str] | None, timeout: tuple[float, float]
    ) -> requests.Response:
        if url.startswith("https:") and self._host.conf.disk_transfer_tls == "off":
            raise self._not_trusted(f"{url} is encrypted, but [DEFAULT] disk_transfer_tls is off here")
        return self._session.request(method, url, headers=headers, stream=True, timeout=timeout)

    def _not_trusted(self, why: str) -> errors.HostNotTrusted:
        return errors.HostNotTrusted(
            "The server's disks were not sent, because its host and the chosen one could not agree on an encrypted connection."
            " An administrator has to check the certificates of both.",
            details=f"host {self._host.name}: {why}",
        )


def _encrypted(url: str) -> str:
    return "https:" + url.removeprefix("http:") if url.startswith("http:") else url


def _ssl_errors_in(failure: BaseException) -> Iterator[ssl.SSLError]:
    """Yields the errors of OpenSSL inside an exception of a library."""
    if isinstance(failure, ssl.SSLError):
        yield failure
    inner = [*failure.args, getattr(failure, "reason", None), failure.__cause__]
    for each in inner:
        if isinstance(each, BaseException) and each is not failure:
            yield from _ssl_errors_in(each)
