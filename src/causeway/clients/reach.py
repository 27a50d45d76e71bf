"""Checks whether other services can be reached with the configured credentials, for `causeway manage status`."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable

from keystoneauth1 import exceptions as keystone_errors

from causeway import errors
from causeway.clients.image import ImageClient
from causeway.clients.network import NetworkClient
from causeway.clients.placement.client import PlacementClient
from causeway.clients.rights import SERVICE
from causeway.clients.session import ServiceSessions
from causeway.clients.volume import VolumeClient

SERVICE_ROLE = "service"


def checks(
    sessions: ServiceSessions,
    placement: PlacementClient,
    images: ImageClient,
    network: NetworkClient,
    volumes: VolumeClient,
) -> dict[str, Callable[[], str]]:
    """Service -> a function that makes a small call with our own credentials, and returns a line to show.

    The functions raise CausewayError if the service can't be reached or does not accept the credentials.
    """

    def ask_placement() -> str:
        try:
            placement.get_provider(str(uuids.uuid4()))
        except keystone_errors.ClientException as failure:
            raise errors.ServiceFailed("Placement can't be reached.", details=str(failure)) from failure
        return "answers"

    def ask_images() -> str:
        images._api.call(None, "GET", "/v2/images", "list images", called_as=SERVICE, query={"limit": 1})
        return "answers"

    def ask_network() -> str:
        network._api.call(
            None, "GET", "/v2.0/ports", "list ports", called_as=SERVICE, query={"limit": 1, "fields": "id"}
        )
        return "answers"

    def ask_volumes() -> str:
        volumes._api.call(None, "GET", "/v3/volumes", "list volumes", called_as=SERVICE, query={"limit": 1})
        return "answers"

    def ask_identity() -> str:
        credentials = sessions.credentials("keystone")
        if credentials is None:
            raise errors.ServiceFailed("There are no credentials in [keystone] or [service_user].")
        sessions.token(credentials)
        return "gives tokens"

    return {
        "identity": ask_identity,
        "placement": ask_placement,
        "image": ask_images,
        "network": ask_network,
        "volume": ask_volumes,
    }


def roles_of(sessions: ServiceSessions, group: str) -> set[str] | None:
    """The roles of the account in a group of options, or else in [service_user]; None if neither has one.

    Raises ServiceFailed.
    """
    credentials = sessions.credentials(group)
    if credentials is None:
        return None
    try:
        return set(credentials.auth.get_access(credentials.session).role_names)
    except keystone_errors.ClientException as failure:
        raise errors.ServiceFailed(f"The account in [{group}] gets no token.", details=str(failure)) from failure
