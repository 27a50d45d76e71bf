"""When the certificates of hosts end, and what operators have to know about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

# A key of a compute node's capabilities: `CertificateEnd.report` of each certificate of its host that ends soon or has expired;
# None if the host has not looked yet.
CERTIFICATES_ENDING = "certificates_ending"


@dataclass(frozen=True)
class CertificateEnd:
    """A certificate in the file ``file`` of a host, issued for ``subject``, is valid until ``ends`` (UTC)."""

    file: str
    subject: str
    ends: datetime

    def has_expired(self, now: datetime) -> bool:
        return self.ends <= now

    def sentence(self, now: datetime) -> str:
        """What operators have to know, and to do. It counts whole days, so it changes once a day."""
        what, when = f"{self.file}: the certificate of {self.subject}", f"{self.ends:%Y-%m-%d %H:%M} UTC"
        days = abs(self.ends - now).days
        left = f"{days} day{'s' if days > 1 else ''}" if days else "less than a day"
        if self.has_expired(now):
            return f"{what} expired {left} ago, on {when}. Other hosts refuse it. Replace the file"
        return f"{what} expires in {left}, on {when}. Replace the file before, or moves between hosts will fail"

    def report(self) -> dict[str, str]:
        """As JSON, for the reports of the host."""
        return {"file": self.file, "subject": self.subject, "ends": self.ends.isoformat()}

    @classmethod
    def reported(cls, found: dict[str, Any]) -> CertificateEnd:
        """What `report` made."""
        return cls(found["file"], found["subject"], datetime.fromisoformat(found["ends"]))
