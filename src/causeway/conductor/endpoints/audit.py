"""Runs the audit in the super conductor, because that reaches every service and cell that the audit looks at."""

from __future__ import annotations

from causeway.audit import AuditServices, audit_cloud
from causeway.audit.remap import map_server
from causeway.context import RequestContext
from causeway.model.audit import Report
from causeway.running.services import ConductorServices


class AuditEndpoint:
    """RPC: audit."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = AuditServices(
            conf=services.conf,
            api=services.api,
            cells=services.cells,
            computes=services.computes,
            placement=services.placement,
            images=services.images,
            network=services.network,
            volumes=services.volumes,
            stopping=services.stopping,
        )

    def audit(self, context: RequestContext, *, fix: bool) -> Report:  # noqa: ARG002
        return audit_cloud(self._services, fix=fix)

    def map_server(self, context: RequestContext, *, instance_uuid: str, cell: str, host: str) -> Report:  # noqa: ARG002
        return map_server(self._services, uuid=instance_uuid, cell=cell, host=host)
