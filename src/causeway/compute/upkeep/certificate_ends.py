"""Warns of certificates that will expire: those of disk transfers, and those that the driver uses for live migrations.

`cryptography` reads the files. The standard library has no public function that reads the dates of a certificate which nobody
has verified, and an expired one can't be verified.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import NameOID
from oslo_config import cfg

from causeway import metrics
from causeway.compute.disks.certificates import AUTHORITY, CLIENT, SERVER
from causeway.model.certificates import CertificateEnd
from causeway.virt.driver import Driver

LOG = logging.getLogger(__name__)


def files_in_use(conf: cfg.ConfigOpts, driver: Driver) -> list[Path]:
    """The files with certificates that this host uses by its options, each once."""
    found = list(driver.live_migration_certificates()) if driver.supports_live_migration else []
    if conf.disk_transfer_tls != "off":
        found += [Path(conf.disk_transfer_pki_dir) / name for name in (AUTHORITY, SERVER, CLIENT)]
    return list(dict.fromkeys(found))


class CertificateWatch:
    """Says which certificates end soon, in the log and as a metric. Log lines are repeated every day."""

    def __init__(self, host: str, warning_days: int) -> None:
        """``warning_days``: how many days before its end a certificate is announced."""
        self._host = host
        self._warning_days = timedelta(days=warning_days)
        self._said: set[str] = set()

    def look(self, files: Sequence[Path], now: datetime) -> list[CertificateEnd]:
        """Reads the files again; returns the certificates that have expired, or will within the days of warning."""
        found: list[CertificateEnd] = []
        said: set[str] = set()
        for path in files:
            try:
                ends = _ends(path)
            except FileNotFoundError:
                # What needs the file says that it is missing: a start, a transfer, the list of what live migrations lack.
                continue
            except (OSError, ValueError) as failure:
                said.add(f"{path} can't be read, so nobody warns before its certificates expire: {failure}")
                continue
            metrics.CERTIFICATE_EXPIRY.labels(str(path)).set(min(each.ends for each in ends).timestamp())
            found += [each for each in ends if each.ends - now <= self._warning_days]
        expired = {each.sentence(now) for each in found if each.has_expired(now)}
        said |= {each.sentence(now) for each in found}
        for sentence in sorted(said - self._said):
            level = logging.ERROR if sentence in expired else logging.WARNING
            LOG.log(level, "Certificates of host %s: %s", self._host, sentence)
        self._said = said
        return found


def _ends(path: Path) -> list[CertificateEnd]:
    """The certificates of a file in PEM, at least one. Raises OSError, ValueError."""
    return [
        CertificateEnd(str(path), _subject(each), each.not_valid_after_utc)
        for each in x509.load_pem_x509_certificates(path.read_bytes())
    ]


def _subject(certificate: x509.Certificate) -> str:
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else certificate.subject.rfc4514_string()
