"""[service_user]: this service's own account."""

from __future__ import annotations

from keystoneauth1 import loading
from oslo_config import cfg
from oslo_config.cfg import Opt

from causeway.conf.keystone import session_options

OPTS: dict[str, list[Opt]] = {
    "service_user": [
        *loading.get_auth_common_conf_options(),
        *session_options(),
        cfg.BoolOpt(
            "send_service_user_token",
            default=False,
            help="Send a service token beside the user's: services then accept user tokens that expired meanwhile. When"
            " volume attachments are deleted it is always sent, because the volume service asks for it. The account is"
            " also used for [glance], [cinder], [neutron] and [keystone] where these name none, instead of the user's"
            " token once that is not valid any more.",
        ),
    ]
}
