"""Which processor guests see: ``[libvirt] cpu_mode``, ``cpu_models`` and ``cpu_model_extra_flags``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree as ET

from oslo_config import cfg

from causeway.errors import Misconfigured

CUSTOM, NONE = "custom", "none"


@dataclass
class Processor:
    """The options. ``mode`` None: what is best for the kind of guest. ``model``: the one of ``models`` that is used."""

    mode: str | None = None
    models: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    model: str | None = None

    def choose(self, hypervisor: Any, virt_type: str) -> None:
        """Chooses the first of the models that guests can have on this host. Raises `Misconfigured` if there is none."""
        if self.mode != CUSTOM:
            return
        usable = usable_models(ET.fromstring(hypervisor.getDomainCapabilities(None, "x86_64", None, virt_type)))
        self.model = next((model for model in self.models if model in usable), None)
        if self.model is None:
            raise Misconfigured(
                f"[libvirt] cpu_models: this host has none of {', '.join(self.models)}.",
                details=f"it has {', '.join(sorted(usable))}",
            )

    def add_to(self, domain: ET.Element, virt_type: str) -> ET.Element:
        """Adds the ``cpu`` of a guest."""
        mode = self.mode or ("host-model" if virt_type == "kvm" else NONE)
        if mode == NONE:
            # Flags are added to a model, and this guest has none.
            return ET.SubElement(domain, "cpu")
        attributes = {"mode": mode} | ({"match": "exact"} if mode == CUSTOM else {})
        cpu = ET.SubElement(domain, "cpu", attributes)
        if mode == CUSTOM:
            ET.SubElement(cpu, "model", fallback="forbid").text = self.model
        return cpu

    def add_flags(self, cpu: ET.Element) -> None:
        """Adds the flags. libvirt requires them behind the topology."""
        for flag in self.flags if cpu.get("mode") is not None else ():
            policy = "disable" if flag.startswith("-") else "require"
            ET.SubElement(cpu, "feature", policy=policy, name=flag.lstrip("+-").lower())


def usable_models(capabilities: ET.Element) -> set[str]:
    """The CPU models that guests can have, according to the domain capabilities of a host."""
    models = capabilities.iterfind("cpu/mode[@name='custom']/model")
    return {str(model.text) for model in models if model.get("usable") != "no"}


def from_options(conf: cfg.ConfigOpts) -> Processor:
    """The options in [libvirt]. Raises `Misconfigured` for options that contradict each other."""
    local = conf.libvirt
    if local.cpu_mode == CUSTOM and not local.cpu_models:
        raise Misconfigured("[libvirt] cpu_mode custom needs cpu_models.")
    if local.cpu_mode != CUSTOM and local.cpu_models:
        raise Misconfigured("[libvirt] cpu_models are only used with cpu_mode custom.")
    return Processor(local.cpu_mode, list(local.cpu_models), list(local.cpu_model_extra_flags))
