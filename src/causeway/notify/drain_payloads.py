"""Payload objects of drains. The Compute service's notifications have none, so these have a namespace of ours."""

from __future__ import annotations

from typing import Any

import msgspec

from causeway.model.drains import Drain, DrainServer
from causeway.notify.payloads import Payload, time_of

_VERSION = "1.0"


def drain(value: Drain) -> Payload:
    """A drain: the request for it, and its state."""
    request = value.request
    return _object(
        "DrainPayload",
        {
            "uuid": value.id,
            "name": request.name,
            "state": value.state.value,
            "note": value.note,
            "reason": request.reason,
            "scope": msgspec.to_builtins(request.scope),
            "targets": msgspec.to_builtins(request.targets),
            "limits": msgspec.to_builtins(request.limits),
            "deadline": time_of(request.deadline),
            "closed_hosts": list(value.closed),
            "user_id": value.user_id,
            "project_id": value.project_id,
            "created_at": time_of(value.created_at),
            "started_at": time_of(value.started_at),
            "ended_at": time_of(value.ended_at),
        },
    )


def server(of: Drain, value: DrainServer) -> Payload:
    """A server of a drain. ``project_id``: its owner's. Hosts are shown, because only administrators listen here."""
    return _object(
        "DrainServerPayload",
        {
            "drain_uuid": of.id,
            "drain_name": of.request.name,
            "reason": of.request.reason,
            "instance_uuid": value.instance_uuid,
            "display_name": value.name,
            "project_id": value.owner_project,
            "state": value.state.value,
            "how": None if value.how is None else value.how.value,
            "source_cell": value.source_cell,
            "source_host": value.source_host,
            "target_cell": value.target_cell,
            "target_host": value.target_host,
            "flavor": value.flavor,
            "new_flavor": value.new_flavor,
            "why": value.why,
            "attempts": value.attempts,
            "request_id": value.request_id,
            "began_at": time_of(value.began_at),
            "ended_at": time_of(value.ended_at),
        },
    )


def _object(name: str, data: dict[str, Any]) -> Payload:
    return {
        "nova_object.name": name,
        "nova_object.namespace": "causeway",
        "nova_object.version": _VERSION,
        "nova_object.data": data,
    }
