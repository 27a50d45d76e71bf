"""``/os-availability-zone``. Source: Compute API reference, "Availability zones"."""

from __future__ import annotations

from typing import Any

from causeway.api import zones
from causeway.api.answers import hosts as answers
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.views import common

RULE = "os_compute_api:os-availability-zone:"


def _grouped(request: ApiRequest) -> dict[str, list[zones.ServiceInCell]]:
    grouped: dict[str, list[zones.ServiceInCell]] = {}
    for found in zones.list_services(request.services)[0]:
        grouped.setdefault(found.zone, []).append(found)
    # Zones with an enabled service come first; both kinds by name.
    return dict(sorted(grouped.items(), key=lambda pair: (not _is_available(pair[1]), pair[0])))


def _is_available(members: list[zones.ServiceInCell]) -> bool:
    return any(not member.service.disabled for member in members)


@handler(answer=answers.ZONES)
def index(request: ApiRequest) -> Response:
    request.authorize(RULE + "list")
    internal = request.services.conf.internal_service_availability_zone
    return Response(
        200,
        {
            "availabilityZoneInfo": [
                {"zoneName": zone, "zoneState": {"available": _is_available(members)}, "hosts": None}
                for zone, members in _grouped(request).items()
                if zone != internal
            ]
        },
    )


@handler(answer=answers.ZONES_DETAIL)
def detail(request: ApiRequest) -> Response:
    request.authorize(RULE + "detail")
    return Response(
        200,
        {
            "availabilityZoneInfo": [
                {"zoneName": zone, "zoneState": {"available": _is_available(members)}, "hosts": _hosts(members) or None}
                for zone, members in _grouped(request).items()
            ]
        },
    )


def _hosts(members: list[zones.ServiceInCell]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for member in members:
        service = member.service
        if not service.disabled:
            shown.setdefault(service.host, {})[service.binary] = {
                "available": member.up,
                "active": not service.disabled,
                "updated_at": common.micros(service.last_seen_up or service.updated_at),
            }
    return shown
