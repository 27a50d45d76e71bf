"""The administrator's password that a request gives to a guest: its config drive has it until the guest has started."""

from __future__ import annotations

import secrets
import string
from typing import Any

from causeway.api.request import ApiRequest


def chosen(request: ApiRequest, wanted: dict[str, Any]) -> str:
    """The ``adminPass`` that the user wants, or a new one."""
    return wanted.get("adminPass") or _random(request.services.conf.password_length)


def shown(request: ApiRequest, password: str) -> dict[str, str]:
    """How the answer shows it: not at all, unless [api] enable_instance_password."""
    return {"adminPass": password} if request.services.conf.api.enable_instance_password else {}


def _random(length: int) -> str:
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(length))
