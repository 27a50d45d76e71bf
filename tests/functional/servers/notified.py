"""Somebody who hears the versioned notifications of a cloud."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import oslo_messaging
from oslo_config.cfg import ConfigOpts

# Of a cloud that sends them.
CONFIGURATION = Path(__file__).with_name("notifications.conf")


@contextmanager
def heard_by(conf: ConfigOpts, consumer: Any) -> Iterator[None]:
    """``consumer``: an endpoint of oslo.messaging, with a method for each priority."""
    listener = oslo_messaging.get_notification_listener(
        oslo_messaging.get_notification_transport(conf),
        [oslo_messaging.Target(topic="versioned_notifications")],
        [consumer],
        executor="threading",
    )
    listener.start()
    try:
        yield
    finally:
        listener.stop()
        listener.wait()
