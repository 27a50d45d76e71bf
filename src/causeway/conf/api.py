"""[api], and what of [DEFAULT] the API reads."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

OPTS: dict[str, list[Opt]] = {
    "DEFAULT": [
        cfg.StrOpt(
            "osapi_compute_unique_server_name_scope",
            default="",
            choices=[
                ("", "names may be repeated"),
                ("project", "a name once per project"),
                ("global", "a name once in the whole cloud"),
            ],
            help="Where names of servers must be unique.",
        ),
        cfg.StrOpt(
            "default_availability_zone", default="nova", help="The zone of hosts that are in no aggregate with one."
        ),
        cfg.StrOpt(
            "internal_service_availability_zone", default="internal", help="The zone of services other than computes."
        ),
        cfg.StrOpt("default_schedule_zone", help="The zone of servers whose request names none. Not set: any."),
        cfg.IntOpt("password_length", default=12, min=0, help="Length of generated administrator passwords."),
        cfg.IntOpt(
            "max_local_block_devices",
            default=3,
            min=-1,
            help="Most local disks of a server; -1: no limit, 0: servers boot from volumes only.",
        ),
        cfg.ListOpt(
            "non_inheritable_image_properties",
            default=["cache_in_nova", "bittorrent"],
            help="Image properties that a snapshot does not take over from its server's image.",
        ),
        cfg.BoolOpt(
            "allow_resize_to_same_host",
            default=False,
            help="A resize may choose the host that the server is on.",
        ),
    ],
    "api": [
        cfg.StrOpt(
            "auth_strategy",
            default="keystone",
            choices=["keystone", "noauth2"],
            help="Who says who calls: keystonemiddleware, or the caller (`X-Auth-Token: user:project`; for tests).",
        ),
        cfg.IntOpt("max_limit", default=1000, min=0, help="The largest page of a list, and the default one."),
        cfg.StrOpt("compute_link_prefix", help="What links to compute resources begin with, behind a proxy."),
        cfg.StrOpt("glance_link_prefix", help="What links to images begin with, behind a proxy."),
        cfg.BoolOpt(
            "list_records_by_skipping_down_cells",
            default=True,
            help="Lists leave out cells that do not answer; if false, such a list fails.",
        ),
        cfg.BoolOpt("enable_instance_password", default=True, help="Show the administrator password in answers."),
        cfg.StrOpt("dhcp_domain", default="novalocal", help="The domain of servers' host names in their metadata."),
    ],
}
