"""What the host is and has, as libvirt and the operating system report it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import os_traits

from causeway.errors import GuestFailed
from causeway.virt.driver import HostFacts
from causeway.virt.libvirt.capabilities import host_traits
from causeway.virt.libvirt.commands import run

# What this driver can do, and no more.
TRAITS = [
    os_traits.COMPUTE_IMAGE_TYPE_ISO,
    os_traits.COMPUTE_IMAGE_TYPE_QCOW2,
    os_traits.COMPUTE_IMAGE_TYPE_RAW,
    os_traits.COMPUTE_NET_ATTACH_INTERFACE,
    os_traits.COMPUTE_NODE,
    os_traits.COMPUTE_RESCUE_BFV,
    os_traits.COMPUTE_VOLUME_MULTI_ATTACH,
]


@dataclass
class HostLimits:
    """How much of the host guests may use; None: all that the hypervisor reports. Memory in MiB, disk in GiB."""

    vcpus: int | None = None
    memory_mb: int | None = None
    local_gb: int | None = None


def host_facts(
    connection: Any,
    *,
    hostname: str,
    virt_type: str,
    instances_dir: Path,
    limits: HostLimits,
    host_ip: str,
    capabilities: host_traits.Capabilities,
) -> HostFacts:
    described = ET.fromstring(connection.getCapabilities())
    _, memory, vcpus, *_ = connection.getInfo()
    disk = shutil.disk_usage(instances_dir).total // 2**30
    architecture = described.findtext("host/cpu/arch") or "x86_64"
    return HostFacts(
        hypervisor_hostname=hostname,
        hypervisor_type="QEMU",
        hypervisor_version=connection.getVersion(),
        vcpus=limits.vcpus if limits.vcpus is not None else vcpus,
        memory_mb=limits.memory_mb if limits.memory_mb is not None else memory,
        local_gb=limits.local_gb if limits.local_gb is not None else disk,
        cpu_info=_cpu_info(described, architecture),
        host_ip=host_ip,
        supported_instances=[[name, virt_type, "hvm"] for name in dict.fromkeys((architecture, "i686"))],
        traits=sorted({*map(str, TRAITS), *host_traits.of_host(connection, virt_type, capabilities)}),
        uptime=_uptime(),
    )


def _cpu_info(capabilities: ET.Element, architecture: str) -> dict[str, Any]:
    cpu = capabilities.find("host/cpu")
    if cpu is None:
        return {"arch": architecture}
    topology = cpu.find("topology")
    return {
        "arch": architecture,
        "model": cpu.findtext("model") or "",
        "vendor": cpu.findtext("vendor") or "",
        "topology": {name: int(value) for name, value in (topology.attrib if topology is not None else {}).items()},
        "features": sorted(feature.get("name", "") for feature in cpu.iterfind("feature")),
    }


def _uptime() -> str | None:
    try:
        return run("uptime").strip()
    except GuestFailed:
        # The program is missing; nothing depends on the uptime.
        return None
