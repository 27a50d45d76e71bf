"""The compute service: one host, its RPC server and its reports."""

from __future__ import annotations

import threading
from pathlib import Path

from oslo_config import cfg

from causeway import clock as clocks
from causeway import durable, metrics
from causeway.clients.image import ImageClient
from causeway.clients.network import NetworkClient
from causeway.clients.placement import PlacementClient
from causeway.clients.vendordata import Vendordata
from causeway.clients.volume import VolumeClient
from causeway.compute.disks.certificates import Certificates
from causeway.compute.disks.copies import Copies
from causeway.compute.disks.disk_offers import DiskOffers
from causeway.compute.disks.disk_server import DiskServer
from causeway.compute.disks.image_cache import ImageCache
from causeway.compute.disks.rounds import Rounds
from causeway.compute.guests import made_images
from causeway.compute.guests.consoles import ConsolesEndpoint
from causeway.compute.guests.external_events import EventsEndpoint
from causeway.compute.guests.guest_states import GuestStatesEndpoint
from causeway.compute.guests.image_caching import ImageCachingEndpoint
from causeway.compute.guests.inside import InsideEndpoint
from causeway.compute.guests.orders import OrdersEndpoint
from causeway.compute.guests.power import PowerEndpoint
from causeway.compute.guests.rescue import RescueEndpoint
from causeway.compute.guests.volume_jobs import VolumeJobsEndpoint
from causeway.compute.handover.dry_run import DryRunEndpoint
from causeway.compute.handover.live_endpoint import LiveEndpoint
from causeway.compute.handover.near_live import NearLiveEndpoint
from causeway.compute.handover.port_devices import PortDevicesEndpoint
from causeway.compute.handover.resize import ResizeEndpoint
from causeway.compute.handover.verify import VerifyEndpoint
from causeway.compute.handover.warm import WarmEndpoint
from causeway.compute.host import Host
from causeway.compute.host.bandwidth import Bandwidth
from causeway.compute.host.claims import CLAIMS, Claims
from causeway.compute.host.departures import Departures
from causeway.compute.host.fence import Fence
from causeway.compute.upkeep.claims_endpoint import ClaimsEndpoint
from causeway.compute.upkeep.inventory import InventoryEndpoint
from causeway.compute.upkeep.missed_orders import MissedOrdersEndpoint, catch_up
from causeway.compute.upkeep.report import Reporter
from causeway.context import admin_context
from causeway.hardware import host as hardware_of
from causeway.hardware.fit import Limits
from causeway.http.secured import Tls
from causeway.model import versions
from causeway.model.outcomes import OperationToken
from causeway.rpc.cell_conductor import CellConductorClient
from causeway.rpc.compute import TOPIC
from causeway.rpc.endpoint import expose
from causeway.rpc.server import RpcServer
from causeway.rpc.transport import Transport
from causeway.virt.driver import Driver


class ComputeService:
    """One compute host. It reaches its cell's message queue and other services, and no database.

    ``disks_dir``: where images and disks on their way are, on the file system of the guests' disks; None: in ``state_dir``.
    """

    def __init__(
        self,
        name: str,
        conf: cfg.ConfigOpts,
        *,
        driver: Driver,
        transport: Transport,
        placement: PlacementClient,
        images: ImageClient,
        network: NetworkClient,
        volumes: VolumeClient,
        vendordata: Vendordata,
        state_dir: Path,
        disks_dir: Path | None = None,
    ) -> None:
        disks_dir = disks_dir or state_dir
        for folder in (state_dir, disks_dir):
            durable.make_folder(folder)
        offers = DiskOffers(disks_dir / "offers")
        stopping = threading.Event()
        clock = clocks.of(conf.simulated.clock, conf.simulated.clock_speed)
        bandwidth = Bandwidth(conf.moves.bandwidth * 2**20, stopping, clock)
        rounds = Rounds(
            disks_dir / "rounds",
            driver,
            lambda size: _sending(bandwidth, size),
            lambda: bool(conf.moves.compression == "auto"),
        )
        conductor = CellConductorClient(transport)
        self._certificates: Certificates | None = None
        tls = None
        if conf.disk_transfer_tls != "off":
            self._certificates = Certificates(Path(conf.disk_transfer_pki_dir))
            tls = Tls(self._certificates.server_context, required=conf.disk_transfer_tls == "required")

        def is_late(token: OperationToken, forward: bool) -> None:
            conductor.check_order(admin_context(), token=token, forward=forward)

        self.host = Host(
            name=name,
            conf=conf,
            driver=driver,
            images=images,
            network=network,
            volumes=volumes,
            vendordata=vendordata,
            conductor=conductor,
            image_cache=ImageCache(disks_dir / "_base", images, conf.compute.allowed_image_formats),
            fence=Fence(state_dir / "moves", name, is_late),
            claims=Claims(
                state_dir / CLAIMS,
                name,
                limits=Limits(
                    conf.cpu_allocation_ratio or conf.initial_cpu_allocation_ratio,
                    conf.ram_allocation_ratio or conf.initial_ram_allocation_ratio,
                ),
            ),
            departures=Departures(state_dir / "departures"),
            offers=offers,
            rounds=rounds,
            copies=Copies(disks_dir / "copies", driver),
            stopping=stopping,
            own_folders=[state_dir, *driver.own_folders()],
            clock=clock,
            disk_server=DiskServer(
                offers, rounds, conf.my_ip, conf.disk_transfer_port, state_dir / "disk-server-port", tls
            ),
        )
        self._missed = MissedOrdersEndpoint(self.host)
        self._server = RpcServer(
            transport,
            TOPIC,
            name,
            [
                expose(endpoint, versions.RPC)
                for endpoint in (
                    PowerEndpoint(self.host),
                    GuestStatesEndpoint(self.host),
                    InsideEndpoint(self.host),
                    ConsolesEndpoint(self.host),
                    OrdersEndpoint(self.host),
                    RescueEndpoint(self.host),
                    VolumeJobsEndpoint(self.host),
                    ImageCachingEndpoint(self.host),
                    ResizeEndpoint(self.host),
                    WarmEndpoint(self.host),
                    LiveEndpoint(self.host),
                    NearLiveEndpoint(self.host),
                    PortDevicesEndpoint(self.host),
                    EventsEndpoint(self.host),
                    InventoryEndpoint(self.host),
                    DryRunEndpoint(self.host),
                    ClaimsEndpoint(self.host),
                    VerifyEndpoint(self.host),
                    self._missed,
                )
            ],
        )
        self._reporter = Reporter(self.host, placement, state_dir)

    def start(self) -> None:
        """Starts everything; when it returns the host is known to Placement and to its cell, and takes orders.

        Raises Misconfigured if the host's certificates can't be used, beside what its parts raise.
        """
        if self._certificates is not None:
            self._certificates.check(self.host.conf.my_ip)
        self.host.driver.start()
        self._load_claims()
        catch_up(self.host, self._missed)
        made_images.delete_unfinished(self.host)
        self.host.disk_server.start()
        self._server.start()
        self._reporter.start()

    def _load_claims(self) -> None:
        conf, hardware = self.host.conf, self.host.driver.host_hardware()
        topology = hardware_of.for_guests(
            hardware.cells, dedicated=conf.compute.cpu_dedicated_set, shared=conf.compute.cpu_shared_set
        )
        if conf.compute.cpu_dedicated_set or conf.compute.cpu_shared_set:
            self.host.driver.confine([cpu for cell in topology.cells for cpu in cell.cpuset])
        devices = hardware_of.devices_for_guests(hardware.pci_devices, hardware_of.device_specs(conf.pci.device_spec))
        self.host.claims.load(topology if topology.cells else None, devices)

    def work_under_way(self) -> list[str]:
        """What is being done on the host at this moment: uuids of servers, and work on whole disks."""
        found = sorted(self._server.resources())
        if not found and self.host.fence.disk_work.count:
            found.append("work on disks")
        return found

    def close_to_new(self, reason: str | None) -> None:
        """Reports why no guest must come to this host. None: nothing is wrong any more."""
        changed, self.host.other_owner = self.host.other_owner != reason, reason
        if changed:
            self._reporter.report_soon()

    def stop(self) -> None:
        """Finishes what is under way. Guests continue to run."""
        self.host.stopping.set()
        self._reporter.stop()
        self._server.stop()
        self.host.vif_events.close()
        self.host.disk_server.stop()
        self.host.driver.close()


def _sending(bandwidth: Bandwidth, size: int) -> None:
    metrics.MOVE_BYTES.labels("sent").inc(size)
    bandwidth.take(size)
