"""``/os-instance_usage_audit_log``. Source: Compute API reference, "Server usage audit log".

Computes here write no audits of usage (Nova's do with ``instance_usage_audit``, off by default), so no host has run one.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from causeway import errors
from causeway.api import zones
from causeway.api.answers import projects as answers
from causeway.api.request import ApiRequest, Response, handler
from causeway.store.database import utcnow

RULE = "os_compute_api:os-instance-usage-audit-log:"


def _month_before(time: datetime) -> tuple[datetime, datetime]:
    """Beginning and end of the last whole month before a time. Raises ValueError if there is none."""
    end = time.replace(day=1, hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    return end.replace(year=end.year - 1, month=12) if end.month == 1 else end.replace(month=end.month - 1), end


def _log(request: ApiRequest, begin: datetime, end: datetime) -> dict[str, Any]:
    """The log of a month."""
    hosts = [found.service.host for found in zones.list_services(request.services, binary=zones.COMPUTE)[0]]
    return {
        "period_beginning": str(begin),
        "period_ending": str(end),
        "num_hosts": len(hosts),
        "num_hosts_done": 0,
        "num_hosts_running": 0,
        "num_hosts_not_run": len(hosts),
        "hosts_not_run": hosts,
        "total_instances": 0,
        "total_errors": 0,
        "overall_status": f"0 of {len(hosts)} hosts done. 0 errors.",
        "log": {},
    }


@handler(answer=answers.AUDIT_LOGS)
def index(request: ApiRequest) -> Response:
    request.authorize(RULE + "list")
    return Response(200, {"instance_usage_audit_logs": _log(request, *_month_before(utcnow()))})


@handler(answer=answers.AUDIT_LOG)
def show(request: ApiRequest, before: str) -> Response:
    request.authorize(RULE + "show")
    form = "%Y-%m-%d %H:%M:%S.%f" if "." in before else "%Y-%m-%d %H:%M:%S"
    try:
        begin, end = _month_before(datetime.strptime(before, form))
    except ValueError as error:
        raise errors.BadRequest(f"Invalid timestamp for date {before}") from error
    return Response(200, {"instance_usage_audit_log": _log(request, begin, end)})
