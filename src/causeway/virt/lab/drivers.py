"""The driver of a lab host."""

from __future__ import annotations

from causeway.virt.lab.hosts import LibvirtEndpoint
from causeway.virt.libvirt.driver import LibvirtDriver
from causeway.virt.libvirt.host import HostLimits
from causeway.virt.libvirt.live_settings import LiveSettings


def driver_of(endpoint: LibvirtEndpoint, *, virt_type: str = "auto") -> LibvirtDriver:
    """Not started yet."""
    return LibvirtDriver(
        endpoint.uri,
        endpoint.host,
        endpoint.instances_dir,
        virt_type=virt_type,
        network_agent=endpoint.network_agent,
        limits=HostLimits(endpoint.vcpus, endpoint.memory_mb, endpoint.local_gb),
        probe_cache=endpoint.probe_cache,
        # Drivers are on the machine, outside of the hosts' network.
        live=LiveSettings(
            endpoint.address, uri=endpoint.control_uri, reachable_here=False, inside=endpoint.inside, tls=True
        ),
    )
