"""The extra specs of known namespaces, and what their values may be (checked from 2.86 on).

Source: Compute admin guide, "Extra specs". Names outside of the known namespaces are free.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from causeway import errors

Check = Callable[[str], bool]

_BOOLEANS = {"1", "t", "true", "on", "y", "yes", "0", "f", "false", "off", "n", "no"}


def _text(_value: str) -> bool:
    return True


def _boolean(value: str) -> bool:
    return value.lower() in _BOOLEANS


def _integer(least: int = 0) -> Check:
    return lambda value: re.fullmatch(r"-?[0-9]{1,18}", value) is not None and int(value) >= least


def _one_of(*words: str) -> Check:
    return lambda value: value in words


def _like(pattern: str) -> Check:
    compiled = re.compile(pattern)
    return lambda value: compiled.fullmatch(value) is not None


_CPU_LIST = _like(r"\^?\d+((-\d+)?(,\^?\d+(-\d+)?)?)*")
_QUOTA_INTEGERS = (
    r"quota:(cpu_(shares|period|quota|limit|reservation)|disk_(read|write|total)_(bytes|iops)_sec(_max)?(_length)?|"
    r"disk_io_(limit|reservation)|memory_(limit|reservation)|memory_shares_share|cpu_shares_share|disk_io_shares_share|"
    r"vif_(inbound|outbound)_(average|peak|burst)|vif_(limit|reservation|shares_share))"
)

# (name, what a value may be); the first name that fits counts
_RULES: list[tuple[re.Pattern[str], Check]] = [
    (re.compile(name), check)
    for name, check in [
        (r"accel:device_profile", _text),
        (r"aggregate_instance_extra_specs:.+", _text),
        (r"capabilities:.+", _text),
        (r"hw:boot_menu", _boolean),
        (r"hw:cpu_policy", _one_of("dedicated", "shared", "mixed")),
        (r"hw:cpu_thread_policy", _one_of("prefer", "isolate", "require")),
        (r"hw:cpu_dedicated_mask", _CPU_LIST),
        (r"hw:cpu_realtime", _boolean),
        (r"hw:cpu_realtime_mask", _CPU_LIST),
        (r"hw:cpu_(max_)?(sockets|cores|threads)", _integer(1)),
        (r"hw:emulator_threads_policy", _one_of("isolate", "share")),
        (r"hw:ephemeral_encryption", _boolean),
        (r"hw:ephemeral_encryption_format", _one_of("luks")),
        (r"hw:hide_hypervisor_id", _boolean),
        (r"hw:input_bus", _one_of("usb", "virtio", "ps2")),
        (r"hw:locked_memory", _boolean),
        (r"hw:maxphysaddr_mode", _one_of("passthrough", "emulate")),
        (r"hw:maxphysaddr_bits", _integer(1)),
        (r"hw:mem_encryption", _boolean),
        (r"hw:mem_encryption_model", _one_of("amd-sev", "amd-sev-es")),
        (r"hw:mem_page_size", _like(r"(large|small|any)|(\d+([kKMGT]i?)?(b|bit|B)?)")),
        (r"hw:numa_nodes", _integer(1)),
        (r"hw:numa_cpus\.\d+", _CPU_LIST),
        (r"hw:numa_mem\.\d+", _integer(1)),
        (r"hw:pci_numa_affinity_policy", _one_of("required", "preferred", "legacy", "socket")),
        (r"hw:pmem", _text),
        (r"hw:pmu", _boolean),
        (r"hw:serial_port_count", _integer()),
        (r"hw:sound_model", _text),
        (r"hw:tpm_version", _one_of("1.2", "2.0")),
        (r"hw:tpm_model", _one_of("tpm-tis", "tpm-crb")),
        (r"hw:tpm_secret_security", _one_of("user", "host", "deployment")),
        (r"hw:usb_model", _text),
        (r"hw:redirected_usb_ports", _integer()),
        (r"hw:vif_multiqueue_enabled", _boolean),
        (r"hw:viommu_model", _one_of("intel", "smmuv3", "virtio", "auto")),
        (r"hw:virtio_packed_ring", _boolean),
        (r"hw:watchdog_action", _one_of("none", "pause", "poweroff", "reset", "disabled")),
        (r"hw_rng:allowed", _boolean),
        (r"hw_rng:rate_(bytes|period)", _integer()),
        (r"hw_video:ram_max_mb", _integer()),
        (r"os:secure_boot", _one_of("disabled", "required")),
        (r"os:vnc_.+", _text),
        (r"pci_passthrough:alias", _like(r"([^:]+:\d+)(\s*,\s*[^:]+:\d+)*")),
        (r"powervm:.+", _text),
        (_QUOTA_INTEGERS, _integer()),
        (r"quota:.+_shares_level", _one_of("custom", "high", "normal", "low")),
        (r"resources(_?[a-zA-Z0-9_-]{1,64})?:[A-Z0-9_]+", _integer()),
        (r"resources:group_policy|group_policy", _one_of("none", "isolate")),
        (r"trait(_?[a-zA-Z0-9_-]{1,64})?:[A-Z0-9_]+", _one_of("required", "forbidden")),
        (r"vmware:.+", _text),
    ]
]
_NAMESPACES = re.compile(
    r"(accel|aggregate_instance_extra_specs|capabilities|hw|hw_rng|hw_video|os|pci_passthrough|powervm|quota|"
    r"(resources|trait)(_?[a-zA-Z0-9_-]{1,64})?|vmware):"
)


def check(name: str, value: str) -> None:
    """Raises ValidationFailed for an unknown spec of a known namespace, or a value that the spec can't have."""
    for pattern, allowed in _RULES:
        if pattern.fullmatch(name):
            if not allowed(value):
                raise errors.ValidationFailed(
                    f"Validation failed; '{value}' is not a valid value for extra spec '{name}'."
                )
            return
    if _NAMESPACES.match(name):
        raise errors.ValidationFailed(
            f"Validation failed; extra spec '{name}' does not appear to be a valid extra spec."
        )
