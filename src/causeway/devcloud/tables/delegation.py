"""Rights that users hand on: application credentials and trusts, and the tokens that were issued by them."""

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from causeway.devcloud.tables.base import Base, new_hex


class ApplicationCredential(Base):
    """A name and a secret by which programs log in as a user, with some of the user's roles in one project."""

    __tablename__ = "application_credentials"
    __table_args__ = (UniqueConstraint("user_id", "name"),)
    id: Mapped[str] = mapped_column(primary_key=True, default=new_hex)
    name: Mapped[str]
    description: Mapped[str | None]
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id"))
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"))
    role_ids: Mapped[list[str]]
    secret_hash: Mapped[str]
    unrestricted: Mapped[bool] = mapped_column(default=False)
    expires_at: Mapped[str | None]


class Trust(Base):
    """Roles of the trustor in one project, for the trustee, who acts as the trustor if `impersonation` says so."""

    __tablename__ = "trusts"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_hex)
    trustor_id: Mapped[str] = mapped_column(ForeignKey("users.id"), index=True)
    trustee_id: Mapped[str] = mapped_column(ForeignKey("users.id"), index=True)
    project_id: Mapped[str] = mapped_column(ForeignKey("projects.id"))
    role_ids: Mapped[list[str]]
    impersonation: Mapped[bool]
    expires_at: Mapped[str | None]
    remaining_uses: Mapped[int | None]


class DelegatedToken(Base):
    """By what a token was issued, if not by its user alone. It outlives the token until the next start."""

    __tablename__ = "delegated_tokens"
    digest: Mapped[str] = mapped_column(primary_key=True)
    credential_id: Mapped[str | None]
    trust_id: Mapped[str | None]
