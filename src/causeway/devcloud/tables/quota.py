"""The limits of projects, of Network and Block Storage."""

from sqlalchemy.orm import Mapped, mapped_column

from causeway.devcloud.tables.base import Base


class Quota(Base):
    """A project's own limit for one resource of one service. Without a row, the service's default applies."""

    __tablename__ = "quotas"
    service: Mapped[str] = mapped_column(primary_key=True)
    project_id: Mapped[str] = mapped_column(primary_key=True)
    resource: Mapped[str] = mapped_column(primary_key=True)
    limit: Mapped[int]
