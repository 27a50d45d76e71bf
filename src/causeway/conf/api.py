"""[api], and options of [DEFAULT] that the API reads."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

OPTS: dict[str, list[Opt]] = {
    "DEFAULT": [
        cfg.StrOpt(
            "default_availability_zone", default="nova", help="The zone of hosts that are in no aggregate with one."
        ),
        cfg.StrOpt(
            "default_schedule_zone",
            help="The zone of new servers whose users request none, as if they had requested it. Not set: any zone.",
        ),
        cfg.StrOpt(
            "instance_name_template",
            default="instance-%(uuid)s",
            help="The name of guests on their hypervisors: with %(uuid)s, %(project_id)s, %(user_id)s or %(hostname)s, or with"
            " a number, %(id)x or %x, which is the uuid as a number. Nova's default, instance-%08x, is of the"
            " row's id there; here rows of different cells have the same ids, and a server that moves gets another one. Read by"
            " the API, conductors and computes; must differ for every server. A guest keeps its name until it is defined anew.",
        ),
        cfg.StrOpt(
            "internal_service_availability_zone", default="internal", help="The zone of services other than computes."
        ),
        cfg.IntOpt("password_length", default=12, min=0, help="Length of generated administrator passwords."),
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
            help="How callers are identified: by keystonemiddleware, or by themselves (`X-Auth-Token: user:project`; for tests).",
        ),
        cfg.IntOpt("max_limit", default=1000, min=0, help="The largest page of a list, and the default one."),
        cfg.StrOpt("compute_link_prefix", help="The beginning of links to compute resources, behind a proxy."),
        cfg.StrOpt("glance_link_prefix", help="The beginning of links to images, behind a proxy."),
        cfg.BoolOpt(
            "list_records_by_skipping_down_cells",
            default=True,
            help="Lists leave out cells that do not answer; if false, such a list fails.",
        ),
        cfg.StrOpt(
            "response_validation",
            default="warn",
            choices=[
                ("ignore", "Answers are not checked."),
                ("warn", "Differences from the schema are logged."),
                ("error", "Such an answer becomes a 500, though the request was carried out: for tests."),
            ],
            help="Whether answers are checked against their schemas before they are sent.",
        ),
        cfg.BoolOpt("enable_instance_password", default=True, help="Show the administrator password in answers."),
    ],
}
