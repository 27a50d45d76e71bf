"""The versioned notifications of moves: under the field's types and publishers, in the field's order."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.moves.run import Run


@contextmanager
def told(
    run: Run,
    action: str,
    host: str,
    instance: Instance,
    *,
    then: dict[str, Any] | None = None,
    new_flavor: Flavor | None = None,
    block_devices: list[BlockDevice] | None = None,
) -> Iterator[None]:
    """``instance.<action>.start`` before the block, ``.end`` after it if it ended well.

    ``then``: what has changed of the server by its end.
    """
    notifier = run.services.notifier
    notifier.instance_action(
        run.context, instance, action, "start", host=host, new_flavor=new_flavor, block_devices=block_devices
    )
    yield
    if notifier.is_enabled:
        after = dataclasses.replace(instance, **(then or {}))
        notifier.instance_action(
            run.context, after, action, "end", host=host, new_flavor=new_flavor, block_devices=block_devices
        )
