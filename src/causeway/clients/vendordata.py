"""Vendor data, which the operator of a cloud shows to guests, from a file and from the operator's services."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import requests

from causeway import errors
from causeway.clients.connections import ServiceSessions
from causeway.conf.metadata import DYNAMIC, STATIC
from causeway.model.instance import Instance

LOG = logging.getLogger(__name__)

GROUP = "vendordata_dynamic_auth"


class Vendordata:
    """Reads vendor data by the options of [api], with the credentials in [vendordata_dynamic_auth]."""

    def __init__(self, sessions: ServiceSessions) -> None:
        self._sessions = sessions
        self._options = sessions.conf.api

    def static(self) -> Any:
        """The JSON of the file; {} if there is none. Raises Misconfigured if it can't be read."""
        path = self._options.vendordata_jsonfile_path
        if STATIC not in self._options.vendordata_providers or not path:
            return {}
        try:
            return json.loads(Path(path).read_bytes())
        except (OSError, ValueError) as failure:
            raise errors.Misconfigured(
                "The vendor data of this cloud can't be read.",
                details=f"[api] vendordata_jsonfile_path {path}: {failure}",
            ) from failure

    def dynamic(self, instance: Instance, hostname: str) -> dict[str, Any]:
        """name of a service -> its data for a server. Raises ServiceFailed if a service fails and that is fatal."""
        if DYNAMIC not in self._options.vendordata_providers:
            return {}
        found: dict[str, Any] = {}
        for target in self._options.vendordata_dynamic_targets:
            name, at, url = target.strip().partition("@")
            if not at:
                LOG.error("[api] vendordata_dynamic_targets: %s is not name@URL: it is left out", target)
            elif name in found:
                LOG.error("[api] vendordata_dynamic_targets: %s is there twice: the second is left out", name)
            else:
                found[name] = self._ask(name, url, _about(instance, hostname))
        return found

    def _ask(self, name: str, url: str, about: dict[str, Any]) -> Any:
        try:
            return self._post(url, about)
        except (requests.RequestException, OSError, ValueError, errors.ServiceFailed) as failure:
            cause = f"{type(failure).__name__}: {failure}"
            if self._options.vendordata_dynamic_failure_fatal:
                raise errors.ServiceFailed(
                    f"The vendor data service {name} did not answer. Try again later.", details=f"{url}: {cause}"
                ) from failure
            LOG.warning("Vendor data service %s at %s: guests get nothing of it: %s", name, url, cause)
            return {}

    def _post(self, url: str, about: dict[str, Any]) -> Any:
        options = self._options
        headers = {"Accept": "application/json", "User-Agent": "causeway"}
        # Never the credentials of [service_user]: such a service must not get their rights.
        credentials = self._sessions.credentials(GROUP) if self._sessions.conf[GROUP].auth_type else None
        if credentials is not None:
            headers["X-Auth-Token"] = self._sessions.token(credentials)
        answer = self._sessions.transport.post(
            url,
            json=about,
            headers=headers,
            timeout=(options.vendordata_dynamic_connect_timeout, options.vendordata_dynamic_read_timeout),
            verify=options.vendordata_dynamic_ssl_certfile or True,
            # Send a token only to hosts that the operator named: no redirects.
            allow_redirects=False,
        )
        if answer.status_code not in (200, 201, 202):
            raise ValueError(f"it answered {answer.status_code}")
        return answer.json()


def _about(instance: Instance, hostname: str) -> dict[str, Any]:
    return {
        "project-id": instance.project_id,
        "instance-id": instance.uuid,
        "image-id": instance.image_ref,
        "user-data": instance.user_data,
        "hostname": hostname,
        "metadata": instance.metadata,
        "boot-roles": instance.system_metadata.get("boot_roles", ""),
    }


__all__ = ["Vendordata"]
