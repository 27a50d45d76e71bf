"""Metadata for guests: config drives and the metadata service."""

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
            help="Every new server has a config drive, even if its user does not request one. Read by the API.",
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
            help="Seconds for which the metadata service remembers what it read about a server. It looks up the server's cell,"
            " and whether the server still exists, for every request. 0: it remembers nothing.",
        ),
        cfg.BoolOpt(
            "use_forwarded_for",
            default=False,
            help="Identify a guest that calls the metadata service directly by the address in X-Forwarded-For (the last one if"
            " there are several). Only behind a proxy that sets it.",
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
            help="StaticJSON: the file with the JSON that all guests get as vendor_data.json.",
        ),
        cfg.ListOpt(
            "vendordata_dynamic_targets",
            default=[],
            help="DynamicJSON: services that are called for each server, as name@URL. vendor_data2.json has each answer"
            " under its name.",
        ),
        cfg.StrOpt(
            "vendordata_dynamic_ssl_certfile",
            default="",
            help="DynamicJSON: certificates of the authorities for the services. Empty: those of this machine.",
        ),
        cfg.IntOpt(
            "vendordata_dynamic_connect_timeout",
            default=5,
            deprecated_group="DEFAULT",
            min=3,
            help="DynamicJSON: seconds for connecting to a service.",
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
            help="DynamicJSON: if a service fails, fail the request, or the build of a config drive. If false, guests get {} for"
            " the service.",
        ),
    ],
    "neutron": [
        cfg.BoolOpt(
            "service_metadata_proxy",
            default=False,
            help="The metadata service is behind the network service's metadata agent, which adds the calling server and signs"
            " it. If false, guests call directly and are identified by their address.",
        ),
        cfg.StrOpt(
            "metadata_proxy_shared_secret",
            default="",
            secret=True,
            help="With service_metadata_proxy: the agent's secret for signatures, the same as in its metadata_agent.ini.",
        ),
    ],
    "vendordata_dynamic_auth": [*loading.get_auth_common_conf_options(), *session_options()],
}
