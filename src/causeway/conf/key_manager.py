"""[key_manager], [barbican], [barbican_service_user]: where the keys of encrypted volumes are, with nova.conf's names.

castellan registers the same options when it is first used. These are here so that they are known before, and in the example.
"""

from __future__ import annotations

from keystoneauth1 import loading
from oslo_config import cfg
from oslo_config.cfg import Opt

from causeway.conf.keystone import TIMEOUT_SECONDS, retries_option, session_options

OPTS: dict[str, list[Opt]] = {
    "key_manager": [
        cfg.StrOpt(
            "backend",
            default="barbican",
            choices=["barbican"],
            help="What keeps keys. Only conductors ask it.",
        ),
    ],
    "barbican": [
        cfg.StrOpt("barbican_endpoint", help="A URL that replaces the catalog's, such as http://localhost:9311."),
        cfg.StrOpt("barbican_api_version", help="The version of the key manager's API, such as v1."),
        cfg.StrOpt(
            "barbican_endpoint_type",
            default="public",
            choices=["public", "internal", "admin"],
            help="Which endpoint of the catalog is used.",
        ),
        cfg.StrOpt("barbican_region_name", help="The region of the key manager, if the catalog has several."),
        cfg.BoolOpt("verify_ssl", default=True, help="Verify the key manager's certificate."),
        cfg.StrOpt("verify_ssl_path", help="Certificates to verify it with; by default those of the system."),
        cfg.BoolOpt(
            "send_service_user_token",
            default=False,
            help="Send a service token with the user's token, as [service_user] send_service_user_token does for all services.",
        ),
        cfg.IntOpt(
            "timeout",
            default=int(TIMEOUT_SECONDS),
            min=1,
            help="Seconds without a byte of the answer after which a call has failed.",
        ),
        retries_option(),
    ],
    "barbican_service_user": [*loading.get_auth_common_conf_options(), *session_options()],
}
