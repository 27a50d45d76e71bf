"""[neutron]: the network service, called with our own credentials."""

from __future__ import annotations

from oslo_config.cfg import Opt

from causeway.conf.keystone import retries_option, service_options

OPTS: dict[str, list[Opt]] = {
    "neutron": [
        *service_options("network"),
        retries_option(),
    ]
}
