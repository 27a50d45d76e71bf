"""Traits of a host: what guests can have according to its hypervisor, and may have according to its operator.

Source: libvirt, "Domain capabilities"; os-traits, whose names say the rest.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree as ET

import libvirt
import os_traits

from causeway.virt.libvirt.guest_xml.machine import Q35
from causeway.virt.libvirt.guest_xml.uefi import Loader

LOG = logging.getLogger(__name__)

_ARCHITECTURE = "x86_64"
# Network cards that QEMU has on x86. libvirt's domain capabilities do not name them.
_VIF_MODELS = ("e1000", "e1000e", "ne2k_pci", "pcnet", "rtl8139", "virtio", "vmxnet3")


# libvirt's name of a processor flag -> its name in traits, where that differs.
_FLAGS = {
    "aes": "AESNI",
    "bmi1": "BMI",
    "fma": "FMA3",
    "pclmuldq": "CLMUL",
    "pni": "SSE3",
    "sse4.1": "SSE41",
    "sse4.2": "SSE42",
    "sha-ni": "SHA",
}


@dataclass
class Capabilities:
    """What a host has beside its hypervisor. ``has_tpm``: its operator allows guests to have TPMs."""

    loaders: list[Loader] = field(default_factory=list)
    has_tpm: bool = False
    # (version of QEMU, version of libvirt) -> traits. They are needed with every report, and expensive to find.
    known: dict[tuple[int, int], list[str]] = field(default_factory=dict)


def of_host(hypervisor: Any, virt_type: str, capabilities: Capabilities) -> list[str]:
    """The traits of a host, from memory if its hypervisor has not changed."""
    versions = hypervisor.getVersion(), hypervisor.getLibVersion()
    if versions not in capabilities.known:
        capabilities.known[versions] = _look(hypervisor, virt_type, capabilities)
    return capabilities.known[versions]


def _look(hypervisor: Any, virt_type: str, capabilities: Capabilities) -> list[str]:
    described = [_described(hypervisor, machine, virt_type) for machine in ("pc", Q35)]
    found = {os_traits.COMPUTE_FIRMWARE_BIOS, os_traits.HW_ARCH_X86_64, os_traits.COMPUTE_ARCH_X86_64}
    if capabilities.loaders:
        found.add(os_traits.COMPUTE_FIRMWARE_UEFI)
    if any(loader.is_secure for loader in capabilities.loaders):
        found.add(os_traits.COMPUTE_SECURITY_UEFI_SECURE_BOOT)
    for each in described:
        found |= _known("COMPUTE_GRAPHICS_MODEL", _values(each, "devices/video", "modelType"))
        found |= _known("COMPUTE_STORAGE_BUS", _values(each, "devices/disk", "bus"))
        if (
            capabilities.has_tpm
            and shutil.which("swtpm")
            and "emulator" in _values(each, "devices/tpm", "backendModel")
        ):
            versions = _values(each, "devices/tpm", "backendVersion") or {"1.2", "2.0"}
            found |= _known("COMPUTE_SECURITY_TPM_SECRET_SECURITY", ("user", "deployment"))
            found |= _known("COMPUTE_SECURITY_TPM", {version.replace(".", "_") for version in versions})
            found |= _known(
                "COMPUTE_SECURITY_TPM", {model.removeprefix("tpm-") for model in _values(each, "devices/tpm", "model")}
            )
        found |= _of_processor(hypervisor, each, virt_type)
    found |= _known("COMPUTE_NET_VIF_MODEL", _VIF_MODELS)
    return sorted(str(trait) for trait in found)


def _described(hypervisor: Any, machine: str, virt_type: str) -> ET.Element:
    return ET.fromstring(hypervisor.getDomainCapabilities(None, _ARCHITECTURE, machine, virt_type))


def _values(described: ET.Element, device: str, name: str) -> set[str]:
    element = described.find(device)
    if element is None or element.get("supported") != "yes":
        return set()
    return {str(value.text) for value in element.iterfind(f"enum[@name='{name}']/value")}


def _known(prefix: str, values: Iterable[str]) -> set[str]:
    names = {f"{prefix}_{value.upper().replace('-', '_')}" for value in values}
    return {str(getattr(os_traits, name)) for name in names if hasattr(os_traits, name)}


def _of_processor(hypervisor: Any, described: ET.Element, virt_type: str) -> set[str]:
    """The processor flags of a guest that has the host's own CPU model, as traits."""
    mode = described.find("cpu/mode[@name='host-model']")
    if mode is None or mode.find("model") is None:
        return set()
    cpu = ET.Element("cpu")
    cpu.extend(child for child in mode if child.tag in ("model", "vendor", "feature"))
    wanted = [ET.tostring(cpu, encoding="unicode")]
    try:
        whole = hypervisor.baselineHypervisorCPU(
            None, _ARCHITECTURE, None, virt_type, wanted, libvirt.VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES
        )
    except libvirt.libvirtError as failure:
        LOG.warning("The hypervisor does not report the flags of its processor: %s", failure)
        return set()
    found = ET.fromstring(whole).iterfind("feature")
    names = {str(feature.get("name")) for feature in found if feature.get("policy") in (None, "require", "force")}
    return _known("HW_CPU_X86", {_FLAGS.get(name, re.sub(r"[.-]", "_", name)) for name in names})
