"""/v1/secrets: who may read and delete a secret is decided as Barbican does it.

Members of its project may, who have a role beyond reader; and users whom its access list names. An administrator or a service of
another project may not, but for `KEY_READERS`: what an operator's policy file allows.
"""

import base64
import binascii
from typing import Any

from sqlalchemy import select

from causeway.devcloud.bodies import Json
from causeway.devcloud.context import Caller
from causeway.devcloud.errors import ApiError, bad_request, forbidden, not_found
from causeway.devcloud.tables.key import Secret
from causeway.devcloud.web import Call, links_root

OCTETS = "application/octet-stream"
TYPES = ("symmetric", "passphrase", "opaque", "public", "private", "certificate")
MAX_BYTES = 20_000
_WRITERS = frozenset({"member", "manager", "admin"})


def is_key_reader(caller: Caller) -> bool:
    """Whether a policy lets the caller have every key: the account of conductors, and not that of hosts."""
    return caller.is_service and caller.is_admin


def is_of_project(caller: Caller, project_id: str) -> bool:
    return caller.project_id == project_id and bool(caller.roles & _WRITERS)


def find(call: Call, secret_id: str, *, for_reading: bool = False) -> Secret:
    row = call.session.get(Secret, secret_id)
    if row is None:
        raise not_found("Not Found. Sorry but your secret is in another castle.")
    caller = call.caller
    allowed = is_of_project(caller, row.project_id) or is_key_reader(caller)
    if not (allowed or (for_reading and caller.user_id in row.readers.split())):
        raise forbidden("Secret retrieval attempt not allowed - please review your user/project privileges")
    return row


def create(call: Call, **_: str) -> Json:
    if not call.caller.roles & _WRITERS:
        raise forbidden("Secret creation attempt not allowed - please review your user/project privileges")
    given = call.body()
    payload = given.get("payload")
    if not isinstance(payload, str) or not payload:
        raise bad_request("A secret needs a payload.")
    if given.get("payload_content_type") != OCTETS or given.get("payload_content_encoding") != "base64":
        raise bad_request(f"A payload must be base64 of {OCTETS} here.")
    try:
        if len(base64.b64decode(payload, validate=True)) > MAX_BYTES:
            raise ApiError(413, "Provided information too large to process")
    except binascii.Error as error:
        raise bad_request("The payload is no base64.") from error
    kind = given.get("secret_type") or "opaque"
    if kind not in TYPES:
        raise bad_request(f"There is no secret type {kind}.")
    row = Secret(
        project_id=call.project_id,
        user_id=call.caller.user_id,
        name=given.get("name"),
        secret_type=kind,
        algorithm=given.get("algorithm"),
        bit_length=given.get("bit_length"),
        mode=given.get("mode"),
        payload=payload,
    )
    call.session.add(row)
    call.session.flush()
    return {"secret_ref": _ref(call, row)}


def list_secrets(call: Call, **_: str) -> Json:
    query = select(Secret).where(Secret.project_id == call.project_id)
    if "name" in call.request.params:
        query = query.where(Secret.name == call.request.params["name"])
    rows = call.session.scalars(query)
    shown = [_shown(call, row) for row in rows]
    return {"secrets": shown, "total": len(shown)}


def show(call: Call, secret_id: str, **_: str) -> Json:
    return _shown(call, find(call, secret_id, for_reading=True))


def show_payload(call: Call, secret_id: str, **_: str) -> None:
    row = find(call, secret_id, for_reading=True)
    call.response.content_type = OCTETS
    call.response.data = base64.b64decode(row.payload)


def delete(call: Call, secret_id: str, **_: str) -> None:
    call.session.delete(find(call, secret_id))


def replace_acl(call: Call, secret_id: str, **_: str) -> Json:
    row = find(call, secret_id)
    read = call.body().get("read")
    users: Any = read.get("users") if isinstance(read, dict) else None
    if not isinstance(users, list) or not all(isinstance(each, str) for each in users):
        raise bad_request("An access list needs users who may read.")
    row.readers = " ".join(users)
    return {"acl_ref": f"{_ref(call, row)}/acl"}


def _ref(call: Call, row: Secret) -> str:
    return f"{links_root(call.request)}/v1/secrets/{row.id}"


def _shown(call: Call, row: Secret) -> Json:
    return {
        "secret_ref": _ref(call, row),
        "name": row.name,
        "status": "ACTIVE",
        "secret_type": row.secret_type,
        "algorithm": row.algorithm,
        "bit_length": row.bit_length,
        "mode": row.mode,
        "expiration": None,
        "creator_id": row.user_id,
        "content_types": {"default": OCTETS},
        "created": row.created_at,
        "updated": row.created_at,
        "consumers": [],
    }
