"""What tests and labs may switch at any time."""

from collections.abc import Callable


class Switches:
    """How the network service behaves.

    - `plug_delay`: seconds between the binding of a port and its becoming ACTIVE with `network-vif-plugged`;
    - `unpluggable_hosts`: ports on these hosts never become ACTIVE;
    - `port_resource_request_groups`: how ports show what they ask Placement for: as groups, or the older way, as one;
    - `on_ports_changed`: called on a background thread after networks, subnets, ports or bindings changed, and
      before ports that wait for it become ACTIVE.
    """

    def __init__(self) -> None:
        self.plug_delay = 0.0
        self.unpluggable_hosts: set[str] = set()
        self.port_resource_request_groups = True
        self.on_ports_changed: Callable[[], None] | None = None
