"""What users do to a server that takes long, apart from moves: each with what it needs, and how one sees that it took effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.faults.answers import Answer, call
from tests.faults.clouds.site import Site
from tests.faults.operations import requests as requests
from tests.faults.operations import states as states
from tests.faults.operations.subjects import DYING, Subject, act, create
from tests.faults.world import Holding


@dataclass(frozen=True)
class Operation:
    """``took_effect``: whether a server is what its user wanted, given what it was before.

    ``may_end_in_error``: Nova leaves a server in ERROR, with a fault, whose operation failed. ``loses_disk``: what was on
    the root disk is gone afterwards. ``keeps_images``: what the images are called that the user has of the server, before or
    afterwards. ``offloads``: in a cloud that takes shelved servers off their hosts at once. ``recipes``: of the journal that it
    runs; those that run none can't be taken over. ``kills_host``: the host that is dead when it is asked for.
    ``only``: what its points begin with, if others are of who asks for it. ``while_off``: it works on a volume of a server that
    is off, whose host connects what is reserved for it when it is started. ``may_leave_cell``: also if it fails afterwards.
    """

    name: str
    prepare: Callable[[Site, Subject], None]
    ask: Callable[[Site, Subject], Answer]
    took_effect: Callable[[Holding, Holding], bool]
    may_end_in_error: bool = False
    loses_disk: bool = False
    keeps_images: tuple[str, ...] = ()
    offloads: bool = True
    recipes: tuple[str, ...] = ()
    kills_host: str | None = None
    only: tuple[str, ...] = ()
    while_off: bool = False
    may_leave_cell: bool = False

    @property
    def group(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name


OPERATIONS = [
    Operation(
        "create image-backed",
        states.nothing,
        create,
        lambda now, _: now.status == "ACTIVE",
        may_end_in_error=True,
        recipes=("build",),
    ),
    Operation(
        "create volume-backed",
        states.with_port,
        requests.create_on_volume,
        lambda now, _: now.status == "ACTIVE",
        may_end_in_error=True,
        recipes=("build",),
    ),
    Operation(
        "delete image-backed",
        states.with_attached_volume,
        requests.delete,
        lambda now, _: now.status is None,
        recipes=("delete",),
    ),
    Operation(
        "delete volume-backed",
        states.server_on_volume,
        requests.delete,
        lambda now, _: now.status is None,
        recipes=("delete",),
    ),
    Operation(
        "shelve image-backed",
        states.server,
        lambda site, subject: act(site, subject, "shelve"),
        lambda now, _: now.status in ("SHELVED", "SHELVED_OFFLOADED"),
        recipes=("shelve",),
    ),
    Operation(
        "shelve volume-backed",
        states.server_on_volume,
        lambda site, subject: act(site, subject, "shelve"),
        lambda now, _: now.status == "SHELVED_OFFLOADED",
        recipes=("shelve",),
    ),
    Operation(
        "offload",
        states.shelved_on_host,
        requests.offload,
        lambda now, _: now.status == "SHELVED_OFFLOADED",
        offloads=False,
        recipes=("shelve_offload",),
    ),
    Operation(
        "unshelve",
        states.shelved,
        lambda site, subject: act(site, subject, "unshelve"),
        lambda now, _: now.status == "ACTIVE",
        recipes=("unshelve",),
    ),
    Operation(
        "move records",
        states.shelved_anywhere,
        requests.drain_records,
        lambda now, before: now.status == "SHELVED_OFFLOADED" and now.cell != before.cell,
        recipes=("move_records",),
        only=("drain.", "move_records."),
    ),
    Operation(
        "rebuild",
        states.server,
        lambda site, subject: act(site, subject, "rebuild", {"imageRef": site.image_id}),
        lambda now, _: now.status == "ACTIVE" and now.marks == 0,
        may_end_in_error=True,
        loses_disk=True,
        recipes=("rebuild",),
    ),
    Operation(
        "rebuild volume-backed",
        states.server_on_volume,
        lambda site, subject: call(
            site,
            "POST",
            f"/servers/{subject.uuid}/action",
            {"rebuild": {"imageRef": site.image_id}},
            microversion="2.93",
        ),
        lambda now, _: now.status == "ACTIVE" and now.marks == 0,
        may_end_in_error=True,
        loses_disk=True,
        recipes=("rebuild_volume",),
    ),
    Operation(
        "rescue",
        states.server,
        lambda site, subject: act(site, subject, "rescue"),
        lambda now, _: now.status == "RESCUE",
        recipes=("rescue",),
    ),
    Operation(
        "unrescue",
        states.rescued,
        lambda site, subject: act(site, subject, "unrescue"),
        lambda now, _: now.status == "ACTIVE",
        recipes=("unrescue",),
    ),
    Operation(
        "evacuate image-backed",
        states.on_dying_host,
        requests.evacuate,
        lambda now, _: now.status == "ACTIVE" and now.host != DYING,
        may_end_in_error=True,
        loses_disk=True,
        recipes=("evacuate",),
        kills_host=DYING,
    ),
    Operation(
        "evacuate volume-backed",
        states.on_dying_host_and_volume,
        requests.evacuate,
        lambda now, _: now.status == "ACTIVE" and now.host != DYING,
        may_end_in_error=True,
        recipes=("evacuate",),
        kills_host=DYING,
    ),
    Operation(
        "live-migrate image-backed",
        states.with_attached_volume,
        requests.migrate_live,
        lambda now, before: now.status == "ACTIVE" and now.host != before.host,
        recipes=("live_migration",),
    ),
    Operation(
        "live-migrate volume-backed",
        states.server_on_volume,
        requests.migrate_live,
        lambda now, before: now.status == "ACTIVE" and now.host != before.host,
        recipes=("live_migration",),
    ),
    Operation(
        "live-migrate across cells image-backed",
        states.reached,
        requests.migrate_across_cells,
        lambda now, _: now.status == "ACTIVE" and now.host == "cell2-host2",
        recipes=("live_migration",),
    ),
    Operation(
        "live-migrate across cells volume-backed",
        states.reached_on_volume,
        requests.migrate_across_cells,
        lambda now, _: now.status == "ACTIVE" and now.host == "cell2-host2",
        recipes=("live_migration",),
    ),
    Operation(
        "near-live-migrate image-backed",
        states.anywhere,
        requests.migrate_near_live,
        lambda now, before: now.status == "ACTIVE" and str(now.host)[:5] != str(before.host)[:5],
        recipes=("near_live_migration",),
    ),
    Operation(
        "near-live-migrate volume-backed",
        states.anywhere_on_volume,
        requests.migrate_near_live,
        lambda now, before: now.status == "ACTIVE" and str(now.host)[:5] != str(before.host)[:5],
        recipes=("near_live_migration",),
    ),
    Operation(
        "unshelve across cells",
        states.shelved_anywhere,
        requests.unshelve_elsewhere,
        lambda now, _: now.status == "ACTIVE" and now.host == "cell2-host1",
        recipes=("unshelve_across_cells", "unshelve"),
        may_leave_cell=True,
    ),
    Operation(
        "attach volume",
        states.with_volume,
        requests.attach_volume,
        lambda now, before: len(now.recorded_volumes) == len(before.recorded_volumes) + 1,
        recipes=("attach_volume",),
    ),
    Operation(
        "detach volume",
        states.with_attached_volume,
        requests.detach_volume,
        lambda now, before: len(now.recorded_volumes) == len(before.recorded_volumes) - 1,
        recipes=("detach_volume",),
    ),
    Operation(
        "swap volume",
        states.with_attached_volume,
        requests.swap_volume,
        lambda now, _: now.has_moved_volume,
        recipes=("swap_volume",),
    ),
    Operation(
        "snapshot volume",
        states.with_attached_volume,
        requests.snapshot_volume,
        lambda now, before: len(now.assisted) > len(before.assisted),
        recipes=("snapshot_volume",),
    ),
    Operation(
        "merge files of a volume",
        states.with_attached_volume,
        requests.merge_files,
        lambda now, before: len(now.assisted) > len(before.assisted),
        recipes=("merge_volume_files",),
    ),
    Operation(
        "refresh attachment",
        states.off_with_attached_volume,
        requests.refresh_attachment,
        lambda now, before: (
            now.attachment_ids != before.attachment_ids and {status for _, status in now.attachments} == {"attached"}
        ),
        recipes=("refresh_attachment",),
        while_off=True,
    ),
    Operation(
        "plug",
        states.server,
        requests.plug,
        lambda now, before: len(now.addresses) == len(before.addresses) + 1,
        recipes=("attach_interface",),
    ),
    Operation(
        "unplug",
        states.with_second_port,
        requests.unplug,
        lambda now, before: len(now.addresses) == len(before.addresses) - 1,
        recipes=("detach_interface",),
    ),
    Operation(
        "plug device",
        states.with_free_device_port,
        requests.plug_device,
        lambda now, before: len(now.addresses) == len(before.addresses) + 1,
        recipes=("attach_interface",),
    ),
    Operation(
        "unplug device",
        states.with_device_port,
        requests.unplug,
        lambda now, before: len(now.addresses) == len(before.addresses) - 1,
        recipes=("detach_interface",),
    ),
    Operation(
        "create image",
        states.server,
        lambda site, subject: act(site, subject, "createImage", {"name": "picture"}),
        lambda now, _: ("picture", "active") in now.images,
        keeps_images=("picture",),
        recipes=("create_image",),
    ),
    Operation(
        "create volume image",
        states.server_on_volume,
        lambda site, subject: act(site, subject, "createImage", {"name": "picture"}),
        lambda now, _: ("picture", "active") in now.images and now.snapshots == ["available"],
        keeps_images=("picture",),
        recipes=("create_volume_image",),
    ),
    Operation(
        "create backup",
        states.with_backup,
        requests.back_up,
        lambda now, _: ("backup2", "active") in now.images,
        keeps_images=("backup1", "backup2"),
        recipes=("create_backup",),
    ),
]
