"""Neutron's metadata agent with its own code for requests: ``metadata_agent.py CONFIG_FILE PORTS_FILE``

Run with the services' own interpreter. What it would ask Neutron by RPC, which port has an address, it reads in a file: JSON, a
list of ports. There is no network namespace and no haproxy: who writes to its socket is a guest, with the headers haproxy adds.
"""

import json
import sys
from pathlib import Path
from typing import Any

from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)

from neutron.agent.metadata import agent, proxy_base  # noqa: E402
from neutron.common import config  # noqa: E402
from neutron.conf.agent.metadata import config as options  # noqa: E402
from oslo_config import cfg  # noqa: E402

config.register_common_config_options()
for each in (options.SHARED_OPTS, options.UNIX_DOMAIN_METADATA_PROXY_OPTS, options.METADATA_PROXY_HANDLER_OPTS):
    options.register_meta_conf_opts(each)
cfg.CONF(["--config-file", sys.argv[1]], project="neutron")


class Ports:
    """Stands for `MetadataPluginAPI`."""

    def __init__(self, _topic: str) -> None:
        pass

    def get_ports(self, _context: object, filters: dict[str, Any]) -> Any:
        (address,) = filters["fixed_ips"]["ip_address"]
        ports = json.loads(Path(sys.argv[2]).read_text())
        return [port for port in ports if port["address"] == address and port["network_id"] in filters["network_id"]]


agent.MetadataPluginAPI = Ports
agent.MetadataProxyHandler._conf = cfg.CONF
server = proxy_base.MetadataProxyServer(2, cfg.CONF.metadata_proxy_socket, agent.MetadataProxyHandler)
print("ready", flush=True)
server.serve_forever()
