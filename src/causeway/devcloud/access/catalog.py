"""The service catalog, in the form of tokens."""

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from causeway.devcloud.bodies import Json
from causeway.devcloud.tables.identity import Endpoint, Service

_INTERNAL_URL = (
    select(Endpoint.url)
    .join(Service, Service.id == Endpoint.service_id)
    .where(Service.type == bindparam("of_type"), Endpoint.interface == "internal", Endpoint.enabled)
)


def render(session: Session, project_id: str) -> list[Json]:
    endpoints: dict[str, list[Json]] = {}
    for row in session.scalars(select(Endpoint).where(Endpoint.enabled)):
        endpoints.setdefault(row.service_id, []).append(
            {
                "id": row.id,
                "interface": row.interface,
                "region": row.region_id,
                "region_id": row.region_id,
                "url": expand(row.url, project_id),
            }
        )
    return [
        {"id": row.id, "type": row.type, "name": row.name, "endpoints": endpoints.get(row.id, [])}
        for row in session.scalars(select(Service).where(Service.enabled))
    ]


def expand(url: str, project_id: str) -> str:
    for name in ("project_id", "tenant_id"):
        url = url.replace(f"%({name})s", project_id).replace(f"$({name})s", project_id)
    return url


def internal_url(session: Session, service_type: str) -> str | None:
    """The URL at which devcloud itself reaches a service of the catalog."""
    return session.scalars(_INTERNAL_URL, {"of_type": service_type}).first()
