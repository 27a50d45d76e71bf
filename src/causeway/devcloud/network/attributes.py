"""Checks of clients' values. Each returns the value or raises ApiError 400."""

import re
from ipaddress import ip_address
from typing import Any

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import ApiError, bad_request
from causeway.devcloud.web import Call

MAC = re.compile(r"([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}")


def project_of(call: Call, given: Json) -> str:
    """The project of a new object: the caller's, or any other for administrators and services."""
    wanted = given.get("project_id") or given.get("tenant_id")
    if wanted and wanted != call.caller.project_id:
        call.require_privileged()
        return str(wanted)
    return call.project_id


def text(name: str, value: Any, maximum: int = 255) -> str:
    if not isinstance(value, str) or len(value) > maximum:
        raise bad_request(f"Invalid input for {name}. Reason: {value!r} is not a text of up to {maximum} characters.")
    return value


def boolean(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() in ("true", "1", "false", "0"):
        return str(value).lower() in ("true", "1")
    raise bad_request(f"Invalid input for {name}. Reason: '{value}' cannot be converted to boolean.")


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise bad_request(f"Invalid input for {name}. Reason: {value!r} is not one of {', '.join(allowed)}.")
    return str(value)


def number(name: str, value: Any, minimum: int = 0, maximum: int = 2147483647) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str) or not str(value).lstrip("-").isdigit():
        raise bad_request(f"Invalid input for {name}. Reason: '{value}' is not an integer.")
    if not minimum <= int(value) <= maximum:
        raise bad_request(f"Invalid input for {name}. Reason: '{value}' is not within {minimum}..{maximum}.")
    return int(value)


def objects(name: str, value: Any) -> list[Json]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise bad_request(f"Invalid input for {name}. Reason: '{value}' is not a list of objects.")
    return value


def texts(name: str, value: Any) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise bad_request(f"Invalid input for {name}. Reason: '{value}' is not a list of texts.")
    return value


def mapping(name: str, value: Any) -> Json:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise bad_request(f"Invalid input for {name}. Reason: '{value}' is not an object.")
    return value


def mac(value: Any) -> str:
    if not isinstance(value, str) or not MAC.fullmatch(value):
        raise bad_request(f"Invalid input for mac_address. Reason: '{value}' is not a valid MAC address.")
    return value.lower()


def address(name: str, value: Any) -> str:
    try:
        return str(ip_address(str(value)))
    except ValueError as error:
        raise bad_request(f"Invalid input for {name}. Reason: '{value}' is not a valid IP address.") from error


def refuse_unknown(given: Json, known: frozenset[str]) -> None:
    unknown = sorted(set(given) - known)
    if unknown:
        raise bad_request(f"Unrecognized attribute(s) '{', '.join(unknown)}'", "HTTPBadRequest")


def require_revision(call: Call, revision: int) -> None:
    """Checks the revision that the caller gave (``If-Match``), if any. Raises ApiError 412 if there is a newer one."""
    wanted = call.request.get_header("If-Match")
    if wanted is not None and wanted != f"revision_number={revision}":
        raise ApiError(
            412, f"Constrained to {wanted}, but current revision is {revision}", "RevisionNumberConstraintFailed"
        )
