"""The versioned notifications of moves, with the types, publishers and order of Nova."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from causeway import errors
from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.moves.move_run import Run


@contextmanager
def notified(
    run: Run,
    action: str,
    host: str,
    instance: Instance,
    *,
    then: dict[str, Any] | None = None,
    new_flavor: Flavor | None = None,
    block_devices: list[BlockDevice] | None = None,
    failing: str | None = None,
) -> Iterator[None]:
    """Sends ``instance.<action>.start`` before the block, and ``instance.<action>.end`` after it if it succeeded.

    ``then``: the fields of the server that the block changes. ``failing``: if the block fails, sends ``instance.<failing>.error``
    and ``.end``; None: sends ``compute.exception`` of the host instead.
    """
    notifier = run.services.notifier
    notifier.instance_action(
        run.context, instance, action, "start", host=host, new_flavor=new_flavor, block_devices=block_devices
    )
    try:
        yield
    except (errors.TakenOver, errors.Cancelled):
        # The host is not at fault.
        raise
    except errors.CausewayError as failure:
        if failing is None:
            notifier.compute_exception(run.context, failure, host=host)
            raise
        notifier.instance_action(run.context, instance, failing, "error", host=host, fault=failure)
        notifier.instance_action(run.context, instance, action, "end", host=host, new_flavor=new_flavor)
        raise
    if notifier.is_enabled:
        after = dataclasses.replace(instance, **(then or {}))
        notifier.instance_action(
            run.context, after, action, "end", host=host, new_flavor=new_flavor, block_devices=block_devices
        )
