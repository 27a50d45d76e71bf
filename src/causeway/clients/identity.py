"""The identity service (Identity API v3). `causeway.clients.session` handles tokens."""

from __future__ import annotations

import logging

from causeway import errors
from causeway.clients.rights import named
from causeway.clients.session import ServiceApi, ServiceSessions
from causeway.context import RequestContext

LOG = logging.getLogger(__name__)


class IdentityClient:
    def __init__(self, sessions: ServiceSessions) -> None:
        self._api = ServiceApi(sessions, "keystone", "identity", version_suffix="/v3")

    def verify_project(self, context: RequestContext, project_id: str) -> None:
        """Raises BadRequest if there is no such project.

        As in Nova, a project counts as valid if it can't be looked up (the caller may not, or the service does not answer).
        Raises Unauthorized if the caller's token is not valid any more.
        """
        missing = errors.NotFound(f"Project ID {project_id} is not a valid project.")
        try:
            self._api.call(
                context,
                "GET",
                "/v3/projects/{project_id}",
                f"show project {project_id}",
                called_as=named(project_id),
                missing=missing,
                project_id=project_id,
            )
        except errors.NotFound as error:
            raise errors.BadRequest(missing.message, details=error.details) from error
        except errors.Forbidden:
            LOG.info("project %s can't be looked up with the caller's rights; taken as valid", project_id)
        except errors.ServiceFailed as error:
            LOG.warning("project %s can't be looked up; taken as valid: %s (%s)", project_id, error, error.details)
