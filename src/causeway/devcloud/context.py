"""The caller of a request."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caller:
    """The user of a valid token, with the roles in the token's project (`None` if unscoped).

    `restricted`: the token is of a trust or of a restricted application credential, and may hand on no rights.
    """

    user_id: str
    project_id: str | None
    roles: frozenset[str]
    restricted: bool = False

    @property
    def is_admin(self) -> bool:
        return "admin" in self.roles

    @property
    def is_service(self) -> bool:
        return "service" in self.roles

    @property
    def is_privileged(self) -> bool:
        """Whether the caller may see and change objects of every project: an administrator or a service."""
        return self.is_admin or self.is_service

    def owns(self, project_id: str) -> bool:
        return self.is_privileged or self.project_id == project_id


NOBODY = Caller("", None, frozenset())
