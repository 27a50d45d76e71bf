"""Finds what a host lacks for live migrations before a guest needs it, and says what to do about it."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from causeway.errors import ClaimRefused
from causeway.virt.libvirt.live.live_settings import LiveSettings
from causeway.virt.libvirt.live.live_source import check_reachable

_RETRIES = Path("/proc/sys/net/ipv4/tcp_retries2")
# Of TCP: 8 retries take about 100 s, 15 (the default) a quarter of an hour.
_MOST_RETRIES = 8
_QEMU_CONF = Path("/etc/libvirt/qemu.conf")
# Where QEMU looks unless qemu.conf says otherwise.
_PKI = "/etc/pki/qemu"
# libvirt's default, unless qemu.conf says otherwise.
_FIRST_PORT = 49152
# Where libvirtd and its clients look unless the URI has a pkipath.
_LIBVIRT_PKI = (
    Path("/etc/pki/CA/cacert.pem"),
    Path("/etc/pki/libvirt/servercert.pem"),
    Path("/etc/pki/libvirt/clientcert.pem"),
)
_CERTIFICATES = ("ca-cert.pem", "server-cert.pem", "server-key.pem", "client-cert.pem", "client-key.pem")


def lacks(settings: LiveSettings, *, retries: Path = _RETRIES, qemu_conf: Path = _QEMU_CONF) -> list[str]:
    """What is missing, a sentence each. May take seconds: this calls the host's own libvirtd as other hosts do."""
    found = [_address(settings), _reached(settings), patience(retries)]
    if settings.certificates:
        found.append(_certificates(qemu_conf))
    return [each for each in found if each]


def patience(retries: Path = _RETRIES) -> str | None:
    """What is wrong with TCP's retries, if anything: QEMU waits for a dead peer as long as TCP does, and a guest with it."""
    try:
        count = int(retries.read_text())
    except (OSError, ValueError):
        return None
    if count <= _MOST_RETRIES:
        return None
    return (
        f"net.ipv4.tcp_retries2 is {count}: when the network dies, migrated guests stand still for minutes; set it to 4"
    )


def _address(settings: LiveSettings) -> str | None:
    try:
        is_loopback = ipaddress.ip_address(settings.address).is_loopback
    except ValueError:
        is_loopback = settings.address == "localhost"
    if not is_loopback:
        return None
    return f"other hosts can't reach it at {settings.address}: set [libvirt] live_migration_inbound_addr or my_ip"


def _reached(settings: LiveSettings) -> str | None:
    try:
        check_reachable(settings.control_uri())
    except ClaimRefused as refusal:
        what = "let libvirtd listen there, with certificates that others trust"
        return f"its hypervisor can't be reached by those of other hosts ({refusal.details}): {what}"
    return None


def _certificates(qemu_conf: Path) -> str | None:
    folder = Path(_folder(qemu_conf))
    try:
        missing = [name for name in _CERTIFICATES if not (folder / name).exists()]
    except OSError:
        # This process may not look there; QEMU may.
        return None
    if not missing:
        return None
    return f"QEMU has no {', '.join(missing)} in {folder}: [libvirt] live_migration_with_native_tls needs them"


def certificates(settings: LiveSettings, *, qemu_conf: Path = _QEMU_CONF) -> list[Path]:
    """The files of certificates that libvirtd and QEMU use with these settings, whether they exist or not."""
    found: list[Path] = []
    uri = urlsplit(settings.control_uri())
    if uri.scheme.endswith("+tls"):
        own = parse_qs(uri.query).get("pkipath")
        found += [Path(own[0]) / path.name for path in _LIBVIRT_PKI] if own else _LIBVIRT_PKI
    if settings.certificates:
        found += [Path(_folder(qemu_conf)) / name for name in _CERTIFICATES if name.endswith("-cert.pem")]
    return found


def first_port(qemu_conf: Path = _QEMU_CONF) -> int:
    """The first of the TCP ports to which the QEMUs of other hosts connect."""
    try:
        found = re.search(r"^\s*migration_port_min\s*=\s*(\d+)", qemu_conf.read_text(errors="replace"), re.M)
    except OSError:
        found = None
    return int(found[1]) if found is not None else _FIRST_PORT


def _folder(qemu_conf: Path) -> str:
    """The folder of QEMU's certificates for migrations."""
    try:
        said = qemu_conf.read_text(errors="replace")
    except OSError:
        return _PKI
    for name in ("migrate", "default"):
        found = re.search(rf'^\s*{name}_tls_x509_cert_dir\s*=\s*"([^"]*)"', said, re.M)
        if found is not None:
            return found[1]
    return _PKI
