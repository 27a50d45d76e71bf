"""[notifications]: notifications about servers and resources."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

OPTS: dict[str, list[Opt]] = {
    "notifications": [
        cfg.StrOpt(
            "notification_format",
            default="unversioned",
            choices=[
                ("unversioned", "Nova's legacy format, which is not sent here: no notifications at all"),
                ("versioned", "versioned notifications"),
                ("both", "as versioned"),
            ],
            help="Which notifications are sent. The default is Nova's.",
        ),
        cfg.StrOpt(
            "notify_on_state_change",
            choices=[
                ("vm_state", "when the VM state changes"),
                ("vm_and_task_state", "when the VM state or the task state changes"),
            ],
            help="When to send instance.update. The process that saved the change sends it: an API or a conductor. If this is"
            " set, it is also sent when a server is renamed. Not set: never.",
        ),
        cfg.ListOpt(
            "versioned_notifications_topics",
            default=["versioned_notifications"],
            help="Topics of versioned notifications; queues are called <topic>.info and <topic>.error.",
        ),
        cfg.BoolOpt(
            "bdms_in_notifications",
            default=False,
            help="Fill in block_devices in all notifications of servers, even if it must be looked up. Otherwise it is only in"
            " those whose sender knows them.",
        ),
    ]
}
