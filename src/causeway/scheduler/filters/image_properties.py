"""ImagePropertiesFilter."""

from __future__ import annotations

from oslo_utils import versionutils

from causeway.scheduler.explain import Refusal
from causeway.scheduler.filters.base import HostFilter, Request
from causeway.scheduler.host_state import HostState

_ARCHITECTURE_ALIASES = {"amd64": "x86_64", "x64": "x86_64", "i386": "i686", "i486": "i686", "i586": "i686"}
_VM_MODE_ALIASES = {"hv": "hvm", "hvm": "hvm", "pv": "xen", "baremetal": "hvm"}
# The name of the property, and its former name, which old images can still have.
_ARCHITECTURE = ("hw_architecture", "architecture")
_HYPERVISOR_TYPE = ("img_hv_type", "hypervisor_type")
_VM_MODE = ("hw_vm_mode", "vm_mode")
_HYPERVISOR_VERSION = ("img_hv_requested_version", "hypervisor_version_requires")


class ImagePropertiesFilter(HostFilter):
    """The image's architecture, hypervisor type and virtual machine mode must be among those the host can run."""

    def check(self, host: HostState, request: Request) -> Refusal | None:
        image = request.spec.image
        if image is None:
            return None
        node = host.record.node
        architecture = _property(image.properties, _ARCHITECTURE)
        hypervisor = _property(image.properties, _HYPERVISOR_TYPE)
        mode = _property(image.properties, _VM_MODE)
        wanted = (
            _ARCHITECTURE_ALIASES.get(architecture, architecture),
            hypervisor,
            _VM_MODE_ALIASES.get(mode, mode),
        )
        if any(wanted) and not any(_can_run(supported, wanted) for supported in node.supported_instances):
            what = ", ".join(part for part in wanted if part)
            has = "; ".join("/".join(supported) for supported in node.supported_instances)
            return Refusal(
                f"can't run the image ({what})",
                f"can't run the image ({what})",
                {"wants": what, "has": has or "nothing"},
            )
        version = _property(image.properties, _HYPERVISOR_VERSION)
        if version:
            own = versionutils.convert_version_to_str(node.hypervisor_version)
            if not _satisfies(own, version):
                return Refusal(
                    f"lacks the hypervisor version that the image wants ({version})",
                    f"lack the hypervisor version that the image wants ({version})",
                    {"wants": version, "has": own},
                )
        return None


def _property(properties: dict[str, object], names: tuple[str, ...]) -> str:
    return next((str(properties[name]).lower() for name in names if properties.get(name)), "")


def _can_run(supported: list[str], wanted: tuple[str, ...]) -> bool:
    return all(not want or want == has.lower() for want, has in zip(wanted, supported, strict=False))


def _satisfies(version: str, predicate: str) -> bool:
    try:
        return bool(versionutils.VersionPredicate(predicate).satisfied_by(version))
    except ValueError:
        return False
