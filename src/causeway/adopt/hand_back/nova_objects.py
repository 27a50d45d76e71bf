"""Values of columns in which Nova keeps versioned objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from causeway.adopt.hand_back.json_text import json_text
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.instance import KeyPair
from causeway.model.numa import InstanceNUMATopology
from causeway.model.pci import InstancePCIRequest
from causeway.scheduler.request import RequestSpec

_NAME, _NAMESPACE, _VERSION, _DATA = (
    "nova_object.name",
    "nova_object.namespace",
    "nova_object.version",
    "nova_object.data",
)
# Of Xena (24): every release since reads these. A deployment's own are taken where it has written later ones. With an earlier
# one Nova would convert what has the present form: the pinned CPUs of an InstanceNUMACell before 1.5 were among all CPUs.
OLDEST = {
    "Flavor": "1.2", "KeyPair": "1.4", "KeyPairList": "1.3", "InstanceNUMATopology": "1.3", "InstanceNUMACell": "1.6",
    "TrustedCerts": "1.0", "RequestSpec": "1.14", "ImageMeta": "1.8", "ImageMetaProps": "1.30",
}  # fmt: skip
# Lists, and what no filter asks for.
_NO_TEXTS = ("hw_numa_cpus", "hw_numa_mem", "img_block_device_mapping", "img_mappings", "traits_required")


class NovaObjects:
    """Makes them with the versions that this deployment writes. ``texts``: values of such columns that it has written."""

    def __init__(self, texts: Iterable[str | None]) -> None:
        self._versions = dict(OLDEST)
        for text in texts:
            if text:
                self._learn(msgspec.json.decode(text))

    def _learn(self, value: Any) -> None:
        if isinstance(value, dict):
            if _NAME in value:
                name, version = value[_NAME], value[_VERSION]
                # Rows of earlier releases are still there.
                self._versions[name] = max(self._versions.get(name, version), version, key=_numbers)
            for each in value.values():
                self._learn(each)
        elif isinstance(value, list):
            for each in value:
                self._learn(each)

    def made(self, name: str, data: dict[str, Any]) -> dict[str, Any]:
        return {_NAME: name, _NAMESPACE: "nova", _VERSION: self._versions[name], _DATA: data}

    def flavor(self, flavor: Flavor) -> dict[str, Any]:
        return self.made(
            "Flavor",
            {
                "id": flavor.id,
                "flavorid": flavor.flavorid,
                "name": flavor.name,
                "vcpus": flavor.vcpus,
                "memory_mb": flavor.memory_mb,
                "root_gb": flavor.root_gb,
                "ephemeral_gb": flavor.ephemeral_gb,
                "swap": flavor.swap,
                "rxtx_factor": flavor.rxtx_factor,
                "vcpu_weight": 0,
                "is_public": flavor.is_public,
                "disabled": flavor.disabled,
                "description": flavor.description,
                "extra_specs": dict(flavor.extra_specs),
                "created_at": None,
                "updated_at": None,
                "deleted_at": None,
                "deleted": False,
            },
        )

    def flavors(self, current: Flavor) -> str:
        """The column of a server's flavors. It waits for no confirm, so it has no others."""
        return json_text({"cur": self.flavor(current), "old": None, "new": None})

    def key_pairs(self, pairs: Iterable[KeyPair]) -> str:
        objects = [
            self.made(
                "KeyPair",
                {
                    "id": each.id,
                    "name": each.name,
                    "user_id": each.user_id,
                    "fingerprint": each.fingerprint,
                    "public_key": each.public_key,
                    "type": each.type,
                    "created_at": _moment(each.created_at),
                    "updated_at": None,
                    "deleted_at": None,
                    "deleted": False,
                },
            )
            for each in pairs
        ]
        return json_text(self.made("KeyPairList", {"objects": objects}))

    def numa_topology(self, topology: InstanceNUMATopology | None, uuid: str) -> str | None:
        if topology is None:
            return None
        cells = [
            self.made(
                "InstanceNUMACell",
                {
                    "id": cell.id,
                    "cpuset": cell.cpuset,
                    "pcpuset": cell.pcpuset,
                    "memory": cell.memory,
                    "pagesize": cell.pagesize,
                    "cpu_pinning_raw": cell.cpu_pinning_raw,
                    "cpu_policy": cell.cpu_policy,
                    "cpu_thread_policy": cell.cpu_thread_policy,
                    "cpuset_reserved": cell.cpuset_reserved or None,
                },
            )
            for cell in topology.cells
        ]
        data = {"cells": cells, "instance_uuid": uuid, "emulator_threads_policy": None}
        return json_text(self.made("InstanceNUMATopology", data))

    def trusted_certificates(self, ids: list[str] | None) -> str | None:
        return None if not ids else json_text(self.made("TrustedCerts", {"ids": ids}))

    def request_spec(self, before: str | None, spec: RequestSpec, image: ImageMeta | None) -> str:
        """``before``: the column as it is, whose other fields stay."""
        whole = msgspec.json.decode(before) if before else self.made("RequestSpec", _bare_request(spec))
        data = whole[_DATA]
        data["flavor"] = self.flavor(spec.flavor)
        data["availability_zone"] = spec.availability_zone
        data["is_bfv"] = spec.is_volume_backed
        if image is not None and ((data.get("image") or {}).get(_DATA) or {}).get("id") != (image.id or None):
            data["image"] = self._image(image)
        return json_text(whole)

    def _image(self, image: ImageMeta) -> dict[str, Any] | None:
        data: dict[str, Any] = {
            "name": image.name,
            "status": image.status,
            "container_format": image.container_format,
            "disk_format": image.disk_format,
            "min_disk": image.min_disk,
            "min_ram": image.min_ram,
            "size": image.size,
            "properties": self.made(
                "ImageMetaProps", {name: value for name, value in image.properties.items() if name not in _NO_TEXTS}
            ),
        }
        if image.id:
            data["id"] = image.id
        return self.made("ImageMeta", data)


def pci_requests(requests: Iterable[InstancePCIRequest]) -> str:
    """A list that is no object."""
    return json_text(
        [
            {
                "request_id": each.request_id,
                "count": each.count,
                "spec": each.spec,
                "alias_name": each.alias_name,
                "numa_policy": each.numa_policy,
                "requester_id": each.requester_id,
            }
            for each in requests
        ]
    )


def _bare_request(spec: RequestSpec) -> dict[str, Any]:
    hints: Mapping[str, list[str]] = spec.scheduler_hints
    return {
        "instance_uuid": spec.instance_uuid,
        "project_id": spec.project_id,
        "user_id": spec.user_id,
        "num_instances": spec.num_instances,
        "scheduler_hints": dict(hints),
        "image": None,
        "numa_topology": None,
        "pci_requests": None,
        "instance_group": None,
        "limits": None,
        "ignore_hosts": None,
        "force_hosts": None,
        "force_nodes": None,
        "retry": None,
    }


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _moment(time: datetime | None) -> str | None:
    return None if time is None else time.replace(microsecond=0).isoformat() + "Z"


__all__ = ["OLDEST", "NovaObjects", "pci_requests"]
