"""Lists all points, from the recipes, the methods of computes, and the interfaces of drivers and services."""

from __future__ import annotations

import inspect

from causeway.compute.guests.orders import OrdersEndpoint
from causeway.compute.guests.rescue import RescueEndpoint
from causeway.compute.guests.volume_jobs import VolumeJobsEndpoint
from causeway.compute.handover.live_endpoint import LiveEndpoint
from causeway.compute.handover.near_live import NearLiveEndpoint
from causeway.compute.handover.port_devices import PortDevicesEndpoint
from causeway.compute.handover.resize import ResizeEndpoint
from causeway.compute.handover.warm import WarmEndpoint
from causeway.compute.upkeep.claims_endpoint import ClaimsEndpoint
from causeway.faults.hooks import DRIVER_METHODS
from causeway.faults.routes import ROUTES
from causeway.moves.recipes import LIVE_MIGRATE
from causeway.moves.steps.near_live import SelectOtherCell
from causeway.operations.recipes import RECIPES
from causeway.rpc.adopting import AdoptingClient
from causeway.rpc.cell_conductor import CellConductorClient
from causeway.rpc.compute import ComputeClient
from causeway.rpc.conductor import ConductorClient
from causeway.rpc.declare import Client, calls_of
from causeway.rpc.scheduler import SchedulerClient
from causeway.rpc.super_conductor import SuperConductorClient

RPC_CLIENTS: tuple[type[Client], ...] = (
    AdoptingClient,
    CellConductorClient,
    ComputeClient,
    ConductorClient,
    SchedulerClient,
    SuperConductorClient,
)

# A host fetches a disk from another host and then notifies it, or the disk goes through the image service.
DISK_POINTS = (
    "disk.fetch.before",
    "disk.fetch.connect",
    "disk.fetch.after",
    "disk.release.before",
    "disk.upload.in",
    "disk.download.in",
    "disk.stream.in",
    "disk.stream.off",
    "disk.stream.sent",
    "image.stored",
)
# A host begins a round of a running guest's disks, sends a part of it, has received a part.
WARM_POINTS = ("warm.round.begun", "warm.part.out", "warm.part.in")
# Reached between two checks of the progress of a live migration.
LIVE_POINTS = ("live.transfer.in",)
# A drain requests a move, a confirm or a revert (noted: it has noted that, but not yet sent it), closes and opens hosts.
DRAIN_POINTS = (
    "drain.move.before",
    "drain.move.noted",
    "drain.move.after",
    "drain.confirm.before",
    "drain.confirm.after",
    "drain.revert.before",
    "drain.revert.after",
    "drain.close.noted",
    "drain.close.after",
    "drain.open.before",
    "drain.open.after",
)
# A host that is taken from Nova has put Nova's identity aside (held), is Causeway's and its service does not run yet (marked).
# One that is released has ended its service, is nobody's (unmarked).
ADOPT_POINTS = ("adopt.take.held", "adopt.take.marked", "adopt.release.ended", "adopt.release.unmarked")
# Methods that only read, or that run beside the order which they are about: they have no points.
_ASKS = (
    {name for name in vars(LiveEndpoint) if not name.startswith("_")}
    - {
        "live_migration",
        "pre_live_migration",
        "post_live_migration_at_destination",
        "post_live_migration_at_source",
        "rollback_live_migration_at_destination",
        "rollback_live_migration_at_source",
        "check_can_live_migrate_destination",
    }
    | {name for name in vars(NearLiveEndpoint) if name.startswith("check_")}
    | {"attach_missing_port_devices"}
)
# Orders that call no method of the driver that has a point.
_WITHOUT_DRIVER = {
    "claim_port_device",
    "discard_copies",
    "prep_snapshot_based_resize_at_dest",
    "check_can_live_migrate_destination",
    "send_part",
}
# Orders that clean up when their outcome was recorded.
_CLEAN_UP = {
    "finish_snapshot_based_resize_at_dest",
    "prep_snapshot_based_resize_at_source",
    "save_guest_at_source",
    "wake_guest_at_dest",
}


def every_point() -> list[str]:
    """Returns all points, grouped by kind."""
    return [
        *step_points(),
        *compute_points(),
        *DISK_POINTS,
        *WARM_POINTS,
        *LIVE_POINTS,
        *DRAIN_POINTS,
        *ADOPT_POINTS,
        *driver_points(),
        *call_points(),
        *rpc_points(),
    ]


def step_points() -> list[str]:
    """Returns the points of steps, on the conductor. Steps after the pivot have no undo points."""
    # Live migrations to other cells begin as near-live ones, and only after the first step get their own recipe.
    begun_before = (LIVE_MIGRATE.name, SelectOtherCell.name)
    found = []
    for recipe in RECIPES.values():
        for place, step in enumerate(recipe.steps):
            phases = ["do"] if (recipe.name, step.name) != begun_before else []
            phases += ["undo"] if place < recipe.behind_pivot else []
            found += [f"{recipe.name}.{step.name}.{phase}.{side}" for phase in phases for side in ("before", "after")]
        found += [f"{recipe.name}.roll_back.{side}" for side in ("before", "after")]
    return found


def compute_points() -> list[str]:
    # Releases a claim, and calls no method of the driver.
    released = [f"compute.{ClaimsEndpoint.drop_move_claim.__name__}.{place}" for place in ("before", "after")]
    return released + [
        f"compute.{name}.{place}"
        for endpoint in (
            ResizeEndpoint,
            WarmEndpoint,
            LiveEndpoint,
            NearLiveEndpoint,
            PortDevicesEndpoint,
            OrdersEndpoint,
            RescueEndpoint,
            VolumeJobsEndpoint,
        )
        for name, _function in inspect.getmembers(endpoint, inspect.isfunction)
        if not name.startswith("_") and name not in _ASKS
        for place in ("before", "in", "after", "recorded")
        if (place != "in" or name not in _WITHOUT_DRIVER) and (place != "recorded" or name in _CLEAN_UP)
    ]


def driver_points() -> list[str]:
    return [f"driver.{name}.{place}" for name in DRIVER_METHODS for place in ("before", "after")]


def call_points() -> list[str]:
    return [f"call.{route}.{place}" for route in ROUTES for place in ("request", "reply")]


def rpc_points() -> list[str]:
    return [
        f"rpc.{client.topic}.{name}.{place}"
        for client in RPC_CLIENTS
        for name, call in calls_of(client).items()
        # A cast is not answered.
        for place in (("request",) if call.is_cast else ("request", "reply"))
    ]
