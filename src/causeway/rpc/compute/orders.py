"""Orders of operations other than moves. A host carries out each order once, even if the answer is lost."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.outcomes import GuestOutcome, OperationToken, UploadedDisk
from causeway.rpc.compute.guest_states import GuestStateCalls
from causeway.rpc.compute.guests import GuestCalls
from causeway.rpc.compute.of_shared_disks import FROM_DEAD_HOST, shares_no_disks
from causeway.rpc.declare import IfSet, call


class OrderCalls(GuestCalls, GuestStateCalls):
    """A part of `causeway.rpc.compute.ComputeClient`.

    Each order raises TakenOver if another conductor owns the operation, and ClaimRefused if the operation has undone it since.
    """

    @call(since="1.14", monitor=True)
    def build_guest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        again: bool,
    ) -> GuestOutcome:
        """Makes a new guest. Its ports (``instance.network_info``) exist but are not bound, and its volumes are reserved.

        ``again``: the host got this order before, so it first destroys what it may have made.
        """

    @call(since="1.14", monitor=True)
    def undo_build(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> None:
        """`remove_guest`, after `build_guest`. A conductor that takes the build over may build on this host again."""

    @call(since="1.14", monitor=True, newer=(FROM_DEAD_HOST,))
    def rebuild_guest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
        snapshot_id: str | None,
        power_on: bool,
        dead_host: IfSet[str | None] = None,
    ) -> GuestOutcome:
        """Makes the guest anew on this host, with its ports and volumes. The old guest is destroyed with its disks.

        ``dead_host``: the guest is made from the disks that this host kept in storage that both reach, if there are any.
        A local root disk is made from the server's image otherwise, or has the content of the image ``snapshot_id``.
        """

    @call(since="1.18", monitor=True, too_old=shares_no_disks)
    def keep_disks(self, context: RequestContext, host: str, *, token: OperationToken, instance: Instance) -> None:
        """Makes the disks that `rebuild_guest` has taken over from a dead host this host's for good."""

    @call(since="1.14", monitor=True)
    def remove_guest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> None:
        """Destroys a guest with all its disks, including stashed ones, and disconnects its volumes."""

    @call(since="1.14", monitor=True)
    def start_guest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> GuestOutcome:
        """`power_on_instance`."""

    @call(since="1.14", monitor=True)
    def restore_guest(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        block_devices: list[BlockDevice],
    ) -> GuestOutcome:
        """`power_on_instance`, for a guest that `store_disk` may have powered off."""

    @call(since="1.14", monitor=True)
    def stop_guest(self, context: RequestContext, host: str, *, token: OperationToken, instance: Instance) -> None:
        """`power_off_instance`."""

    @call(since="1.14", monitor=True)
    def store_disk(
        self, context: RequestContext, host: str, *, token: OperationToken, instance: Instance, image_id: str | None
    ) -> None:
        """Powers the guest off, whose disk is a volume. ``image_id``: always None; hosts of 0.1.0 need the argument."""

    @call(since="1.18", monitor=True, too_old=shares_no_disks)
    def store_image(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        image_id: str,
        power_off: bool,
    ) -> UploadedDisk:
        """Makes an image of the root disk where the image service keeps its images. The image's record exists, and says raw.

        Its size is None if the host can't: then nothing has happened. ``power_off``: powers the guest off before.
        """

    @call(since="1.14", monitor=True)
    def upload_disk(
        self,
        context: RequestContext,
        host: str,
        *,
        token: OperationToken,
        instance: Instance,
        image_id: str,
        power_off: bool,
    ) -> UploadedDisk:
        """Uploads the whole root disk into an existing image.

        ``power_off``: powers the guest off; a host that can uploads most of the disk before that.
        """
