"""Who calls."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caller:
    """The user behind a valid token, and what they may do in the token's project (`None` when unscoped)."""

    user_id: str
    project_id: str | None
    roles: frozenset[str]

    @property
    def is_admin(self) -> bool:
        return "admin" in self.roles

    @property
    def is_service(self) -> bool:
        return "service" in self.roles

    @property
    def is_privileged(self) -> bool:
        """Sees and changes what belongs to every project: an administrator or another service."""
        return self.is_admin or self.is_service

    def owns(self, project_id: str) -> bool:
        return self.is_privileged or self.project_id == project_id


NOBODY = Caller("", None, frozenset())
