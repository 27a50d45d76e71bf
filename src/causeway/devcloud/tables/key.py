"""Keys, and how volumes are encrypted."""

from sqlalchemy.orm import Mapped, mapped_column

from causeway.devcloud.tables.base import Base, new_id, now


class Secret(Base):
    """``payload``: as base64. ``readers``: the users that its access list names."""

    __tablename__ = "secrets"
    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    project_id: Mapped[str] = mapped_column(index=True)
    user_id: Mapped[str]
    name: Mapped[str | None]
    secret_type: Mapped[str] = mapped_column(default="opaque")
    algorithm: Mapped[str | None]
    bit_length: Mapped[int | None]
    mode: Mapped[str | None]
    payload: Mapped[str]
    readers: Mapped[str] = mapped_column(default="")
    created_at: Mapped[str] = mapped_column(default=now)


class TypeEncryption(Base):
    """How the volumes of a type are encrypted."""

    __tablename__ = "type_encryptions"
    volume_type_id: Mapped[str] = mapped_column(primary_key=True)
    provider: Mapped[str]
    cipher: Mapped[str | None]
    key_size: Mapped[int | None]
    control_location: Mapped[str] = mapped_column(default="front-end")


class VolumeKey(Base):
    """The key of an encrypted volume, and the provider that its type had when it was made."""

    __tablename__ = "volume_keys"
    volume_id: Mapped[str] = mapped_column(primary_key=True)
    secret_id: Mapped[str]
    provider: Mapped[str]
    cipher: Mapped[str | None]
    key_size: Mapped[int | None]
