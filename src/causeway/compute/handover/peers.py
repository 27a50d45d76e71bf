"""Requests from host to host for offered disks: over HTTP or HTTPS, as ``disk_transfer_tls`` says."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path

import requests

from causeway import errors
from causeway.compute.disks.certificates import AUTHORITY, CLIENT, CLIENT_KEY, Certificates
from causeway.compute.host import Host

_UPGRADE_REQUIRED = 426
# OpenSSL's reasons if one side refuses the other. Its other errors mean that a connection broke.
_REFUSALS = re.compile(
    r"CERTIFICATE|UNKNOWN_CA|HANDSHAKE_FAILURE|ACCESS_DENIED|DECRYPT_ERROR|NO_SHARED_CIPHER"
    r"|WRONG_VERSION_NUMBER|PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL"
)


def session(host: Host, secret: str) -> requests.Session:
    """For requests with ``secret`` to one other host. Raises HostNotTrusted if this host's certificates can't be used."""
    made = requests.Session()
    # Proxies of the environment are not for traffic between hosts.
    made.trust_env = False
    # Hosts send nobody elsewhere: a redirect could lead around TLS, or to what only this host can reach.
    made.max_redirects = 0
    made.headers["Authorization"] = f"Bearer {secret}"
    if host.conf.disk_transfer_tls != "off":
        folder = Path(host.conf.disk_transfer_pki_dir)
        try:
            Certificates(folder).client_context()
        except (OSError, ValueError) as failure:
            raise _not_trusted(host, f"its own certificates in {folder} can't be used: {failure}") from failure
        # The files are read again for each connection.
        made.verify, made.cert = str(folder / AUTHORITY), (str(folder / CLIENT), str(folder / CLIENT_KEY))
    return made


def ask(
    host: Host,
    session: requests.Session,
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    timeout: tuple[float, float],
) -> requests.Response:
    """Sends a request; the answer's body is not read yet.

    Raises HostNotTrusted if one host refuses the other's certificate, and what `requests` raises.
    """
    if host.conf.disk_transfer_tls == "required":
        url = _encrypted(url)
    try:
        answer = session.request(method, _allowed(host, url), headers=headers, stream=True, timeout=timeout)
        if answer.status_code == _UPGRADE_REQUIRED:
            # The other host has required TLS only since it made its offer.
            answer.close()
            url = _encrypted(url)
            answer = session.request(method, _allowed(host, url), headers=headers, stream=True, timeout=timeout)
    except requests.ConnectionError as failure:
        refusal = next((each for each in _within(failure) if _REFUSALS.search(each.reason or "")), None)
        if refusal is None:
            raise
        raise _not_trusted(host, f"{url}: {refusal}") from failure
    return answer


def _encrypted(url: str) -> str:
    return "https:" + url.removeprefix("http:") if url.startswith("http:") else url


def _allowed(host: Host, url: str) -> str:
    if url.startswith("https:") and host.conf.disk_transfer_tls == "off":
        raise _not_trusted(host, f"{url} is encrypted, and [DEFAULT] disk_transfer_tls is off here")
    return url


def _not_trusted(host: Host, why: str) -> errors.HostNotTrusted:
    return errors.HostNotTrusted(
        "The server's disks were not sent, because its host and the chosen one could not agree on an encrypted connection. An"
        " administrator has to check the certificates of both.",
        details=f"host {host.name}: {why}",
    )


def _within(failure: BaseException) -> Iterator[ssl.SSLError]:
    """The errors of OpenSSL inside an exception of a library."""
    if isinstance(failure, ssl.SSLError):
        yield failure
    inner = [*failure.args, getattr(failure, "reason", None), failure.__cause__]
    for each in inner:
        if isinstance(each, BaseException) and each is not failure:
            yield from _within(each)
