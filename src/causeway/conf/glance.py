"""[glance]: the image service, called with the user's token, and with our own credentials when the token has expired."""

from __future__ import annotations

from oslo_config.cfg import Opt

from causeway.conf.keystone import retries_option, service_options

OPTS: dict[str, list[Opt]] = {"glance": [*service_options("image"), retries_option("num_retries")]}
