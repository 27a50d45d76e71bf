"""libvirt's counters of a guest.

Source: libvirt, virConnectGetAllDomainStats.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import libvirt

from causeway.errors import GuestFailed
from causeway.model.diagnostics import CpuDiagnostics, Diagnostics, DiskDiagnostics, NicDiagnostics
from causeway.model.states import PowerState
from causeway.virt.libvirt import power
from causeway.virt.libvirt.connection import Connection

_WANTED = (
    libvirt.VIR_DOMAIN_STATS_BALLOON
    | libvirt.VIR_DOMAIN_STATS_VCPU
    | libvirt.VIR_DOMAIN_STATS_INTERFACE
    | libvirt.VIR_DOMAIN_STATS_BLOCK
)
_KIB_IN_MIB = 1024


def diagnostics(connection: Connection, uuid: str, virt_type: str) -> Diagnostics:
    """The counters of a running guest. Raises `GuestFailed` if it does not run."""

    def ask(hypervisor: Any) -> tuple[dict[str, Any], str]:
        domain = power.find(hypervisor, uuid)
        if domain is None or power.power_state_of(domain) is not PowerState.RUNNING:
            raise GuestFailed(f"The guest of server {uuid} does not run: there are no counters of it.")
        ((_domain, counted),) = hypervisor.domainListGetStats([domain], _WANTED)
        return counted, domain.XMLDesc()

    counted, xml = connection.call(f"say what it counts of guest {uuid}", ask, again=True)
    return Diagnostics(
        driver="libvirt",
        hypervisor=virt_type,
        hypervisor_os="linux",
        memory_maximum=_mib(counted.get("balloon.maximum")),
        memory_used=_mib(counted.get("balloon.current")),
        cpus=[CpuDiagnostics(number, of.get("time")) for number, of in _numbered(counted, "vcpu", "current")],
        nics=_nics(counted, xml),
        disks=[
            DiskDiagnostics(
                device=of["name"],
                read_bytes=of.get("rd.bytes"),
                read_requests=of.get("rd.reqs"),
                write_bytes=of.get("wr.bytes"),
                write_requests=of.get("wr.reqs"),
            )
            for _number, of in _numbered(counted, "block", "count")
        ],
    )


def _nics(counted: dict[str, Any], xml: str) -> list[NicDiagnostics]:
    addresses = {
        target.get("dev"): address.get("address", "")
        for interface in ET.fromstring(xml).iterfind("devices/interface")
        if (target := interface.find("target")) is not None and (address := interface.find("mac")) is not None
    }
    return [
        NicDiagnostics(
            device=of["name"],
            mac_address=addresses.get(of["name"], ""),
            rx_octets=of.get("rx.bytes"),
            rx_errors=of.get("rx.errs"),
            rx_drop=of.get("rx.drop"),
            rx_packets=of.get("rx.pkts"),
            tx_octets=of.get("tx.bytes"),
            tx_errors=of.get("tx.errs"),
            tx_drop=of.get("tx.drop"),
            tx_packets=of.get("tx.pkts"),
        )
        for _number, of in _numbered(counted, "net", "count")
    ]


def _numbered(counted: dict[str, Any], group: str, how_many: str) -> list[tuple[int, dict[str, Any]]]:
    """(number, name -> value) of each device in a group: ``net.0.rx.bytes`` is ``rx.bytes`` of number 0 in ``net``."""
    found = []
    for number in range(counted.get(f"{group}.{how_many}", 0)):
        start = f"{group}.{number}."
        found.append(
            (number, {key.removeprefix(start): value for key, value in counted.items() if key.startswith(start)})
        )
    return found


def _mib(kib: int | None) -> int | None:
    return None if kib is None else kib // _KIB_IN_MIB
