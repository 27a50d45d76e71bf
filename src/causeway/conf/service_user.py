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
            help="Send a service token with the user's token: services then accept user tokens that expired meanwhile. It is"
            " always sent when volume attachments are deleted, because the volume service needs it. The account is also used for"
            " [glance], [cinder], [neutron] and [keystone] if these name none; and in accepted work, when the user's token has"
            " expired, for what the user was allowed to use when the work was accepted.",
        ),
    ]
}
