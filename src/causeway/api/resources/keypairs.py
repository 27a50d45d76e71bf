"""``/os-keypairs``. Source: Compute API reference, "Keypairs"."""

from __future__ import annotations

from typing import Any

from causeway.api import keys, paging
from causeway.api.answers import projects as answers
from causeway.api.answers.parts import EMPTY
from causeway.api.quotas import quota
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas import keypairs as schemas
from causeway.api.views import common
from causeway.model.instance import KeyPair
from causeway.store.api import keypairs as store

RULE = "os_compute_api:os-keypairs:"


def _owner(request: ApiRequest, operation: str, user_id: str | None = None) -> str:
    """The user whose key pairs are meant: the caller, or from 2.10 on whom an administrator names. Raises Forbidden."""
    if user_id is None and request.version >= (2, 10):
        user_id = request.param("user_id")
    user_id = user_id or request.user_id
    request.authorize(RULE + operation, {"user_id": user_id})
    return user_id


def _basic(request: ApiRequest, keypair: KeyPair) -> dict[str, Any]:
    shown = {"name": keypair.name, "public_key": keypair.public_key, "fingerprint": keypair.fingerprint}
    if request.version >= (2, 2):
        shown["type"] = keypair.type
    return shown


@handler(query=schemas.LIST, answer=answers.KEYS)
def index(request: ApiRequest) -> Response:
    keypairs = store.list_for(request.services.api, _owner(request, "index"))
    paged = request.version >= (2, 35)
    if paged:
        keypairs = paging.page(request, keypairs, lambda keypair: keypair.name)
    body: dict[str, Any] = {"keypairs": [{"keypair": _basic(request, keypair)} for keypair in keypairs]}
    if paged and (
        links := paging.next_link(request, "/os-keypairs", keypairs, keypairs[-1].name if keypairs else None)
    ):
        body["keypairs_links"] = links
    return Response(200, body)


@handler(query=schemas.ONE, answer=answers.KEY)
def show(request: ApiRequest, keypair_name: str) -> Response:
    keypair = store.get(request.services.api, _owner(request, "show"), keypair_name)
    shown = _basic(request, keypair) | {
        "id": keypair.id,
        "user_id": keypair.user_id,
        "created_at": common.micros(keypair.created_at),
        "updated_at": None,
        "deleted": False,
        "deleted_at": None,
    }
    return Response(200, {"keypair": shown})


@handler(body=schemas.CREATE, statuses=[(1, 1, (200,)), (2, None, (201,))], answer=answers.NEW_KEY)
def create(request: ApiRequest) -> Response:
    """Imports a public key. Before 2.92 a pair is made if there is none, and its private key is shown this once."""
    wanted = request.body["keypair"]
    user_id = _owner(request, "create", wanted.get("user_id"))
    kind = wanted.get("type", "ssh")
    public, private = wanted.get("public_key"), None
    services = request.services
    known = quota.look_up(services, request.project_id, user_id)

    def check(used: int) -> None:
        message = "Quota exceeded, too many key pairs."
        quota.check_count(
            services, request.project_id, "key_pairs", message, used=used, more=1, user_id=user_id, known=known
        )

    # Before a key is made, and again when it is stored.
    check(quota.key_pair_count(services, user_id))
    if public is None:
        private, public = keys.generate_ssh() if kind == "ssh" else keys.generate_x509(user_id)
    keypair = store.create(
        services.api,
        KeyPair(wanted["name"], user_id, public, keys.fingerprint(public, kind), kind),
        check,
        one_by_one=quota.rechecks(services),
    )
    shown = _basic(request, keypair) | {"user_id": user_id}
    if private is not None:
        shown["private_key"] = private
    return Response(201 if request.version >= (2, 2) else 200, {"keypair": shown})


@handler(query=schemas.ONE, statuses=[(1, 1, (202,)), (2, None, (204,))], answer=EMPTY)
def delete(request: ApiRequest, keypair_name: str) -> Response:
    store.delete(request.services.api, _owner(request, "delete"), keypair_name)
    return Response(204 if request.version >= (2, 2) else 202)
