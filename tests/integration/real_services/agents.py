"""Stand-ins for Neutron's Open vSwitch agents of many hosts, in one process: ``agents.py CONFIG_FILE HOST...``

They report over the real RPC, so that ML2 binds ports to the hosts, and say of each port whose active binding is on one of them
that it is up. There is no data path. Run with the services' own interpreter.
"""

import sys
import threading
import time
from typing import Any

from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)

from neutron.agent import resource_cache  # noqa: E402
from neutron.agent import rpc as agent_rpc  # noqa: E402
from neutron.api.rpc.callbacks import resources  # noqa: E402
from neutron.common import config  # noqa: E402
from neutron.conf.agent import common as agent_config  # noqa: E402
from neutron_lib import context  # noqa: E402
from neutron_lib.agent import topics  # noqa: E402
from neutron_lib.callbacks import events, registry  # noqa: E402
from oslo_config import cfg  # noqa: E402

config.register_common_config_options()
agent_config.register_agent_state_opts_helper(cfg.CONF)
config.init(["--config-file", sys.argv[1]])
HOSTS = sys.argv[2:]
CONTEXT = context.get_admin_context_without_session()
REPORT = agent_rpc.PluginReportStateAPI(topics.REPORTS)
PLUGIN = agent_rpc.PluginApi(topics.PLUGIN)


def state(host: str, first: bool) -> dict[str, Any]:
    configurations: dict[str, Any] = {
        "bridge_mappings": {"physical": "br-physical"},
        "tunnel_types": [],
        "tunneling_ip": None,
        "l2_population": False,
        "datapath_type": "system",
        "integration_bridge": "br-int",
        "ovs_hybrid_plug": False,
        "ovs_capabilities": {"datapath_types": ["netdev", "system"], "iface_types": ["internal", "tap", "vxlan"]},
    }
    found = {
        "binary": "neutron-openvswitch-agent",
        "host": host,
        "topic": "N/A",
        "agent_type": "Open vSwitch agent",
        "configurations": configurations,
    }
    return {**found, "start_flag": True} if first else found


def on_port(_type: object, _event: object, _trigger: object, payload: Any) -> None:
    port = payload.latest_state
    active = next((binding for binding in port.bindings if binding.status == "ACTIVE"), None)
    if active is None or active.host not in HOSTS or active.vif_type != "ovs" or port.status == "ACTIVE":
        return

    def up() -> None:
        PLUGIN.update_device_up(CONTEXT, port.id, f"ovs-agent-{active.host}", active.host)
        print("up", port.id, active.host, flush=True)

    threading.Thread(target=up, daemon=True).start()


registry.subscribe(on_port, resources.PORT, events.AFTER_UPDATE)
resource_cache.RemoteResourceCache([resources.PORT]).start_watcher()
reports = 0
while True:
    for name in HOSTS:
        # Casts, often at first: what is sent before the server has its queue is lost.
        REPORT.report_state(CONTEXT, state(name, reports == 0), use_call=False)
    reports += 1
    time.sleep(1 if reports < 30 else 20)
