"""The libvirt driver: QEMU/KVM guests. `causeway.virt.libvirt.driver.LibvirtDriver` is its entrance."""

from __future__ import annotations

from contextlib import suppress


def _choose_native_threads() -> None:
    """os-brick and os-vif wait through oslo.service, which uses eventlet unless it is set otherwise before they are loaded."""
    try:
        from oslo_service import backend
        from oslo_service.backend import exceptions
    except ImportError:
        # Part of the extra 'libvirt': without it there is no driver that needs this.
        return
    with suppress(exceptions.BackendAlreadySelected):
        backend.init_backend(backend.BackendType.THREADING)


_choose_native_threads()
