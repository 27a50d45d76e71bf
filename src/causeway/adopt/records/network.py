"""Ports of servers, as Nova last saw them. The network service knows how they are now; it does not know their order and tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from causeway.adopt.nova.objects import UnknownRecord
from causeway.model.network import FixedIp, Vif


def vifs_of(cached: Any, tags: Mapping[str, str], what: str) -> list[Vif]:
    """``cached``: Nova's list. ``tags``: port -> tag. Raises UnknownRecord."""
    try:
        return [_vif(each, tags.get(each["id"])) for each in cached or []]
    except (KeyError, TypeError, AttributeError) as failure:
        raise UnknownRecord(f"{what} has no known form: {failure!r}") from failure


def _vif(each: Mapping[str, Any], tag: str | None) -> Vif:
    network = each.get("network") or {}
    meta = network.get("meta") or {}
    return Vif(
        id=each["id"],
        address=each["address"],
        network_id=network.get("id") or "",
        network_label=network.get("label") or "",
        fixed_ips=list(_fixed_ips(network)),
        mtu=meta.get("mtu") or Vif.mtu,
        vnic_type=each.get("vnic_type") or "normal",
        vif_type=each.get("type"),
        details=dict(each.get("details") or {}),
        profile=dict(each.get("profile") or {}),
        active=bool(each.get("active")),
        tag=tag,
        preserve_on_delete=bool(each.get("preserve_on_delete")),
    )


def _fixed_ips(network: Mapping[str, Any]) -> Iterator[FixedIp]:
    for subnet in network.get("subnets") or []:
        for ip in subnet.get("ips") or []:
            yield FixedIp(
                address=ip["address"],
                # Nova does not keep it.
                subnet_id=subnet.get("id") or "",
                version=ip.get("version") or subnet.get("version") or 4,
                cidr=subnet.get("cidr") or "",
                gateway=(subnet.get("gateway") or {}).get("address"),
                dns=[each["address"] for each in subnet.get("dns") or []],
                floating_ips=[each["address"] for each in ip.get("floating_ips") or []],
                dhcp=(subnet.get("meta") or {}).get("enable_dhcp"),
                routes=[
                    {"destination": each["cidr"], "nexthop": (each.get("gateway") or {}).get("address") or ""}
                    for each in subnet.get("routes") or []
                ],
            )
