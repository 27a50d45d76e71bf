"""What a host lacks for live migrations: found out before a guest needs it, and reported with what to do."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path

from causeway.errors import ClaimRefused
from causeway.virt.libvirt.live_settings import LiveSettings
from causeway.virt.libvirt.live_source import check_reachable

_RETRIES = Path("/proc/sys/net/ipv4/tcp_retries2")
# TCP's: 8 are about a minute and a half, 15 a quarter of an hour.
_MOST_RETRIES = 8
_QEMU_CONF = Path("/etc/libvirt/qemu.conf")
# Where QEMU looks without a word in qemu.conf.
_PKI = "/etc/pki/qemu"
# libvirt's, without a word in qemu.conf.
_FIRST_PORT = 49152
_CERTIFICATES = ("ca-cert.pem", "server-cert.pem", "server-key.pem", "client-cert.pem", "client-key.pem")


def lacks(settings: LiveSettings, *, retries: Path = _RETRIES, qemu_conf: Path = _QEMU_CONF) -> list[str]:
    """A sentence each. May take seconds: this host's libvirtd is called as others would call it."""
    found = [_address(settings), _reached(settings), patience(retries)]
    if settings.certificates:
        found.append(_certificates(qemu_conf))
    return [each for each in found if each]


def patience(retries: Path = _RETRIES) -> str | None:
    """QEMU waits for a peer that died as long as TCP does, and the guest of a live migration stands still meanwhile."""
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
        # Not for us to see: QEMU may.
        return None
    if not missing:
        return None
    return f"QEMU has no {', '.join(missing)} in {folder}: [libvirt] live_migration_with_native_tls needs them"


def first_port(qemu_conf: Path = _QEMU_CONF) -> int:
    """Of those to which other hosts' QEMUs connect."""
    try:
        found = re.search(r"^\s*migration_port_min\s*=\s*(\d+)", qemu_conf.read_text(errors="replace"), re.M)
    except OSError:
        found = None
    return int(found[1]) if found is not None else _FIRST_PORT


def _folder(qemu_conf: Path) -> str:
    """Where QEMU's certificates are for migrations."""
    try:
        said = qemu_conf.read_text(errors="replace")
    except OSError:
        return _PKI
    for name in ("migrate", "default"):
        found = re.search(rf'^\s*{name}_tls_x509_cert_dir\s*=\s*"([^"]*)"', said, re.M)
        if found is not None:
            return found[1]
    return _PKI
