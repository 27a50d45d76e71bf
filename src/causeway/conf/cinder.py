"""[cinder]: the volume service. `causeway.clients.rights` decides when it is called with these credentials."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

from causeway.conf.keystone import retries_option, service_options

# As in nova.conf, catalog_info, os_region_name and endpoint_template stand for keystoneauth's adapter options.
_REPLACED = ("service_type", "valid_interfaces", "region_name", "endpoint_override")

OPTS: dict[str, list[Opt]] = {
    "cinder": [
        *(option for option in service_options("block-storage") if option.dest not in _REPLACED),
        cfg.StrOpt(
            "catalog_info",
            default="volumev3::publicURL",
            regex=r"^[\w-]+:\w*:\w+$",
            help="Where to find the volume service in the catalog: <service_type>:<service_name>:<endpoint_type>.",
        ),
        cfg.StrOpt(
            "endpoint_template",
            help="A URL that replaces the catalog's, such as http://localhost:8776/v3/%(project_id)s.",
        ),
        cfg.StrOpt("os_region_name", help="The region of the volume service, if the catalog has several."),
        cfg.BoolOpt(
            "cross_az_attach",
            default=True,
            help="Whether a server may have volumes of another availability zone than its own. If not, a server with volumes"
            " stays in its zone when it is moved.",
        ),
        retries_option(),
    ]
}
