"""The keys of encrypted volumes: each has its own in the key manager.

Their files are LUKS for real hypervisors (`Switches.makes_luks`). Simulated guests write to them as to any file.
"""

import base64
import secrets
from collections.abc import Callable
from pathlib import Path

from causeway.devcloud.tables.base import new_id
from causeway.devcloud.tables.key import Secret, TypeEncryption, VolumeKey
from causeway.devcloud.tables.volume import Volume
from causeway.devcloud.volume import files
from causeway.devcloud.web import Call

DEFAULT_BITS = 256
LUKS = "luks"


def is_encrypted(call: Call, volume_id: str) -> bool:
    return call.session.get(VolumeKey, volume_id) is not None


def make_for(call: Call, row: Volume, origin_id: str | None) -> Callable[[Path], None]:
    """Makes the key of a new volume if its type wants one. Returns what encrypts the volume's file once it has its content.

    ``origin_id``: the volume whose content it gets, encrypted or not. An encrypted one's copy needs the same key.
    """
    of_type, of_origin = call.session.get(TypeEncryption, row.volume_type_id), None
    if origin_id is not None:
        of_origin = call.session.get(VolumeKey, origin_id)
    if of_origin is not None:
        first = call.session.get(Secret, of_origin.secret_id)
        payload = first.payload if first is not None else ""
        provider, cipher, key_size = of_origin.provider, of_origin.cipher, of_origin.key_size
    elif of_type is not None:
        provider, cipher, key_size = of_type.provider, of_type.cipher, of_type.key_size
        payload = base64.b64encode(secrets.token_bytes((key_size or DEFAULT_BITS) // 8)).decode()
    else:
        return lambda _path: None
    secret = Secret(
        id=new_id(),
        project_id=row.project_id,
        user_id=row.user_id,
        name=f"key of volume {row.id}",
        secret_type="symmetric",  # noqa: S106
        algorithm="aes",
        bit_length=key_size or DEFAULT_BITS,
        payload=payload,
    )
    call.session.add(secret)
    call.session.add(
        VolumeKey(volume_id=row.id, secret_id=secret.id, provider=provider, cipher=cipher, key_size=key_size)
    )
    if of_origin is not None or provider != LUKS or not call.cloud.makes_luks:
        return lambda _path: None
    passphrase, size = base64.b64decode(payload).hex(), row.size
    return lambda path: files.encrypt(path, passphrase, size)


def delete_of(call: Call, volume_id: str) -> None:
    row = call.session.get(VolumeKey, volume_id)
    if row is not None:
        secret = call.session.get(Secret, row.secret_id)
        if secret is not None:
            call.session.delete(secret)
        call.session.delete(row)
