"""The files of a config drive (label ``config-2``), in the layout that cloud-init and others read."""

from __future__ import annotations

import base64
import json
from typing import Any

from causeway.model.instance import Instance
from causeway.model.network import Vif


def files(instance: Instance, vifs: list[Vif]) -> dict[str, bytes]:
    """name -> content; empty if the server has no config drive."""
    if not instance.config_drive:
        return {}
    found: dict[str, bytes] = {
        "openstack/latest/meta_data.json": json.dumps(_meta_data(instance), sort_keys=True).encode(),
        "openstack/latest/network_data.json": json.dumps(_network_data(vifs), sort_keys=True).encode(),
    }
    if instance.user_data:
        found["openstack/latest/user_data"] = base64.b64decode(instance.user_data)
    for place, injected in enumerate(instance.injected_files):
        found[f"openstack/content/{place:04d}"] = base64.b64decode(injected.contents)
    return found


def _meta_data(instance: Instance) -> dict[str, Any]:
    data: dict[str, Any] = {
        "uuid": instance.uuid,
        "name": instance.display_name,
        "hostname": instance.hostname,
        "launch_index": instance.launch_index,
        "availability_zone": instance.availability_zone,
        "project_id": instance.project_id,
        "meta": instance.metadata,
        "public_keys": {pair.name: pair.public_key for pair in instance.keypairs},
        "keys": [{"name": pair.name, "type": pair.type, "data": pair.public_key} for pair in instance.keypairs],
        "devices": [],
    }
    if instance.injected_files:
        data["files"] = [
            {"path": injected.path, "content_path": f"/content/{place:04d}"}
            for place, injected in enumerate(instance.injected_files)
        ]
    return data


def _network_data(vifs: list[Vif]) -> dict[str, Any]:
    links: list[dict[str, Any]] = []
    networks: list[dict[str, Any]] = []
    services: list[dict[str, str]] = []
    for vif in vifs:
        links.append(
            {
                "id": vif.devname,
                "vif_id": vif.id,
                "type": vif.vif_type or "phy",
                "ethernet_mac_address": vif.address,
                "mtu": vif.mtu,
            }
        )
        for place, ip in enumerate(vif.fixed_ips):
            networks.append(
                {
                    "id": f"{vif.devname}-{place}",
                    "link": vif.devname,
                    "network_id": vif.network_id,
                    "type": "ipv4_dhcp" if ip.version == 4 else "ipv6_dhcp",
                    "ip_address": ip.address,
                }
            )
            services.extend({"type": "dns", "address": address} for address in ip.dns)
    return {"links": links, "networks": networks, "services": services}
