"""Makes the files under ``openstack/``."""

from __future__ import annotations

import base64
import json
import secrets
from typing import Any

from causeway.guest_data import versions
from causeway.guest_data.devices import devices
from causeway.guest_data.facts import ServerFacts
from causeway.guest_data.network_data import network_data

SEED_BYTES = 512


def names(facts: ServerFacts, version: str) -> list[str]:
    """Returns the names of a version's files. The password is not one of them: only the metadata service has it."""
    return [
        name
        for name, first in versions.FILES.items()
        if first <= version and (name != versions.USER_DATA or facts.user_data is not None)
    ]


def read(facts: ServerFacts, version: str, name: str) -> bytes | None:
    """Returns the content of a file; None if the version has no such file, or if it is the password."""
    if name not in names(facts, version):
        return None
    match name:
        case versions.META_DATA:
            return _json(meta_data(facts, version))
        case versions.USER_DATA:
            return facts.user_data
        case versions.NETWORK_DATA:
            return _json(network_data(facts.vifs))
        case versions.VENDOR_DATA:
            return _json(facts.vendor_data)
        case versions.VENDOR_DATA2:
            static = {"static": facts.vendor_data} if facts.vendor_data else {}
            return _json(static | facts.dynamic)
    return None


def meta_data(facts: ServerFacts, version: str) -> dict[str, Any]:
    instance = facts.instance
    document: dict[str, Any] = {
        "uuid": instance.uuid,
        "name": instance.display_name,
        "hostname": facts.hostname,
        "launch_index": instance.launch_index,
        "availability_zone": instance.availability_zone,
    }
    if instance.metadata:
        document["meta"] = instance.metadata
    if instance.injected_files:
        document["files"] = [
            {"path": injected.path, "content_path": f"/content/{place:04d}"}
            for place, injected in enumerate(instance.injected_files)
        ]
    if facts.admin_password is not None:
        document["admin_pass"] = facts.admin_password
    if instance.keypairs:
        document["public_keys"] = {pair.name: pair.public_key for pair in instance.keypairs}
        document["keys"] = [
            {"name": pair.name, "type": pair.type, "data": pair.public_key} for pair in instance.keypairs
        ]
    if version >= versions.GRIZZLY:
        # It seeds the guest's random numbers, so it differs each time.
        document["random_seed"] = base64.b64encode(secrets.token_bytes(SEED_BYTES)).decode()
    if version >= versions.LIBERTY:
        document["project_id"] = instance.project_id
    if version >= versions.NEWTON_ONE:
        document["devices"] = devices(facts)
    if version >= versions.VICTORIA:
        document["dedicated_cpus"] = _dedicated_cpus(facts)
    return document


def _dedicated_cpus(facts: ServerFacts) -> list[int]:
    """Returns the guest's CPUs that are pinned to a CPU of the host."""
    topology = facts.instance.numa_topology
    return sorted(cpu for cell in topology.cells for cpu in cell.pcpuset) if topology else []


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()
