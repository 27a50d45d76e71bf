"""Nova's cache of a server's ports. Nova reads them anew from the network service, but plugs by this one when it starts."""

from __future__ import annotations

from typing import Any

import msgspec

from causeway.adopt.hand_back.json_text import json_text
from causeway.model.network import FixedIp, Vif

# Names of a device are what the kernel allows.
_DEVICE = 14


def network_info(before: str | None, vifs: list[Vif]) -> str:
    """The column. ``before``: as it is; what it has of a port whose addresses are the same stays."""
    known = {each["id"]: each for each in (msgspec.json.decode(before) if before else None) or []}
    return json_text([_entry(known.get(vif.id), vif) for vif in vifs])


def _entry(known: dict[str, Any] | None, vif: Vif) -> dict[str, Any]:
    if known is not None and _addresses(known) == sorted(ip.address for ip in vif.fixed_ips):
        details = {"type": vif.vif_type, "details": vif.details, "profile": vif.profile} if vif.vif_type else {}
        return {**known, **details, "preserve_on_delete": vif.preserve_on_delete}
    return {
        "id": vif.id,
        "address": vif.address,
        "network": {
            "id": vif.network_id,
            "bridge": vif.details.get("bridge_name"),
            "label": vif.network_label,
            "subnets": _subnets(vif),
            "meta": {"injected": False, "mtu": vif.mtu, "tunneled": False},
        },
        "type": vif.vif_type,
        "details": vif.details,
        "devname": ("tap" + vif.id)[:_DEVICE],
        "ovs_interfaceid": vif.id if vif.vif_type == "ovs" else None,
        "qbh_params": None,
        "qbg_params": None,
        "active": vif.active,
        "vnic_type": vif.vnic_type,
        "profile": vif.profile,
        "preserve_on_delete": vif.preserve_on_delete,
        "delegate_create": True,
        "meta": {},
    }


def _addresses(known: dict[str, Any]) -> list[str]:
    subnets = (known.get("network") or {}).get("subnets") or []
    return sorted(ip["address"] for subnet in subnets for ip in subnet.get("ips") or [])


def _subnets(vif: Vif) -> list[dict[str, Any]]:
    by_subnet: dict[tuple[str, str], list[FixedIp]] = {}
    for ip in vif.fixed_ips:
        by_subnet.setdefault((ip.subnet_id, ip.cidr), []).append(ip)
    return [
        {
            "cidr": cidr,
            "dns": [_address(each, "dns", ips[0].version) for each in ips[0].dns],
            "gateway": _address(ips[0].gateway, "gateway", ips[0].version),
            "ips": [
                _address(ip.address, "fixed", ip.version)
                | {"floating_ips": [_address(each, "floating", 4) for each in ip.floating_ips]}
                for ip in ips
            ],
            "routes": [
                {
                    "cidr": each["destination"],
                    "gateway": _address(each["nexthop"], "gateway", ips[0].version),
                    "interface": None,
                }
                for each in ips[0].routes
            ],
            "version": ips[0].version,
            "meta": {"enable_dhcp": ips[0].has_dhcp},
        }
        for (_subnet, cidr), ips in by_subnet.items()
    ]


def _address(address: str | None, kind: str, version: int) -> dict[str, Any]:
    return {"address": address, "type": kind, "version": version, "meta": {}}


__all__ = ["network_info"]
