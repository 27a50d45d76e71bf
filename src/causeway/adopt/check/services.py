"""The services around, asked with the credentials in Nova's own files. One that does not answer is not checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from keystoneauth1 import exceptions as keystone_errors
from oslo_config import cfg

from causeway import errors
from causeway.adopt.check.report import NotChecked, Report
from causeway.clients.network import NetworkClient
from causeway.clients.placement import PlacementClient, remote_placement
from causeway.clients.session import ServiceSessions
from causeway.clients.volume import VolumeClient
from causeway.context import admin_context

T = TypeVar("T")


@dataclass(frozen=True)
class AttachedVolume:
    """An attachment as Cinder has it."""

    volume_id: str
    instance_uuid: str | None
    is_connected: bool


class Services:
    """Clients of the services, as far as ``conf`` has what they need. What fails is noted in ``report``."""

    def __init__(self, conf: cfg.ConfigOpts, report: Report) -> None:
        self._report = report
        self._sessions: ServiceSessions | None = self.asked("Neutron and Cinder", lambda: ServiceSessions(conf))
        self.placement: PlacementClient | None = self.asked("Placement", lambda: remote_placement(conf))
        self.network: NetworkClient | None = self._made("Neutron", NetworkClient)
        self.volumes: VolumeClient | None = self._made("Cinder", VolumeClient)

    def _made(self, name: str, kind: Callable[[ServiceSessions], T]) -> T | None:
        sessions = self._sessions
        return None if sessions is None else self.asked(name, lambda: kind(sessions))

    def asked(self, what: str, question: Callable[[], T]) -> T | None:
        """The answer; None if there is none, which is noted."""
        try:
            return question()
        except errors.CausewayError as failure:
            why = " ".join(filter(None, (failure.message, failure.details)))
        except keystone_errors.ClientException as failure:
            why = f"No client can be made from the file: {failure}."
        except (cfg.Error, ValueError, LookupError, TypeError, AttributeError) as failure:
            # An option that is not accepted, or an answer that is none of such a service's.
            why = f"It can't be asked, or its answer is not understood: {type(failure).__name__}."
        self._report.not_checked.append(NotChecked(what, why))
        return None

    def ports(self) -> Iterator[list[dict[str, Any]]]:
        """All ports of servers, page by page. Raises what the client raises."""
        if self.network is None:
            return
        for page in self.network.port_pages(None, "binding:vif_type", "binding:vif_details"):
            yield [port for port in page if str(port["device_owner"]).startswith("compute:") and port["device_id"]]

    def attachments(self) -> dict[str, AttachedVolume]:
        """All attachments of volumes, by id. Raises what the client raises."""
        if self.volumes is None:
            return {}
        return {
            one.id: AttachedVolume(one.volume_id, one.instance_uuid, one.is_connected)
            for page in self.volumes.attachment_pages(admin_context())
            for one in page
        }

    def close(self) -> None:
        if self._sessions is not None:
            self._sessions.close()


__all__ = ["AttachedVolume", "Services"]
