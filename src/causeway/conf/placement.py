"""[placement]: the Placement service. keystoneauth's option names, as in nova.conf."""

from __future__ import annotations

from keystoneauth1 import loading
from oslo_config.cfg import Opt

_ADAPTER = loading.get_adapter_conf_options(include_deprecated=False)
for _option in _ADAPTER:
    if _option.name == "service-type":
        _option.default = "placement"
    elif _option.name == "valid-interfaces":
        _option.default = ["internal", "public"]

OPTS: dict[str, list[Opt]] = {
    "placement": [*loading.get_auth_common_conf_options(), *loading.get_session_conf_options(), *_ADAPTER]
}
