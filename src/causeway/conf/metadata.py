"""What guests learn of themselves, from their config drives and the metadata service."""

from __future__ import annotations

from keystoneauth1 import loading
from oslo_config import cfg
from oslo_config.cfg import Opt

from causeway.conf.keystone import session_options

STATIC, DYNAMIC = "StaticJSON", "DynamicJSON"

OPTS: dict[str, list[Opt]] = {
    "DEFAULT": [
        cfg.BoolOpt(
            "force_config_drive",
            default=False,
            help="Every new server has a config drive, whether its user asks for one or not. Read by the API.",
        ),
    ],
    "api": [
        cfg.StrOpt(
            "dhcp_domain",
            default="novalocal",
            deprecated_group="DEFAULT",
            help="The domain of the host names that guests get. Empty: none. Read by computes and the metadata service.",
        ),
        cfg.IntOpt(
            "metadata_cache_expiration",
            default=15,
            min=0,
            help="Seconds for which the metadata service remembers what it read of a server. Where the server lives, and"
            " whether it is still there, is looked up for every request. 0: it remembers nothing.",
        ),
        cfg.BoolOpt(
            "use_forwarded_for",
            default=False,
            help="A guest that asks the metadata service directly is known by the address in X-Forwarded-For, the last one"
            " if there are several. Only behind a proxy that sets it.",
        ),
        cfg.ListOpt(
            "vendordata_providers",
            item_type=cfg.types.String(choices=[STATIC, DYNAMIC]),
            default=[STATIC],
            help="Where vendor data comes from. Read by computes and the metadata service, as are the options of each.",
        ),
        cfg.StrOpt(
            "vendordata_jsonfile_path",
            deprecated_group="DEFAULT",
            help="StaticJSON: the file with the JSON that all guests are given as vendor_data.json.",
        ),
        cfg.ListOpt(
            "vendordata_dynamic_targets",
            default=[],
            help="DynamicJSON: services that are asked about each server, as name@URL. vendor_data2.json has each answer"
            " under its name.",
        ),
        cfg.StrOpt(
            "vendordata_dynamic_ssl_certfile",
            default="",
            help="DynamicJSON: certificates of who may vouch for the services. Empty: those of this machine.",
        ),
        cfg.IntOpt(
            "vendordata_dynamic_connect_timeout",
            default=5,
            deprecated_group="DEFAULT",
            min=3,
            help="DynamicJSON: seconds in which a service must be connected to.",
        ),
        cfg.IntOpt(
            "vendordata_dynamic_read_timeout",
            default=5,
            min=1,
            help="DynamicJSON: seconds without a byte of the answer after which a service has failed.",
        ),
        cfg.BoolOpt(
            "vendordata_dynamic_failure_fatal",
            default=False,
            help="DynamicJSON: a service that fails makes the request, or the build of a config drive, fail. If false, guests"
            " get {} of it.",
        ),
    ],
    "neutron": [
        cfg.BoolOpt(
            "service_metadata_proxy",
            default=False,
            help="The metadata service is behind the network service's metadata agent, which says who asks and signs it. If"
            " false, guests ask directly and are known by their address.",
        ),
        cfg.StrOpt(
            "metadata_proxy_shared_secret",
            default="",
            secret=True,
            help="With service_metadata_proxy: what the agent signs with, the same here and in its metadata_agent.ini.",
        ),
    ],
    "vendordata_dynamic_auth": [*loading.get_auth_common_conf_options(), *session_options()],
}
