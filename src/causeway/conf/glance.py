"""[glance]: the image service. `causeway.clients.rights` decides when it is called with these credentials."""

from __future__ import annotations

from oslo_config.cfg import Opt

from causeway.conf.keystone import retries_option, service_options

OPTS: dict[str, list[Opt]] = {"glance": [*service_options("image"), retries_option("num_retries")]}
