"""Switches that tests and labs may set at any time."""

from collections.abc import Callable


class Switches:
    """How the network service behaves.

    - `plug_delay`: seconds from the binding of a port until it is ACTIVE and `network-vif-plugged` is sent;
    - `unpluggable_hosts`: ports on these hosts never become ACTIVE;
    - `port_resource_request_groups`: whether ports show their resource requests as groups, or in the older form, as one;
    - `on_ports_changed`: called on a background thread after networks, subnets, ports or bindings were changed, and before ports
      that wait for it become ACTIVE.
    """

    def __init__(self) -> None:
        self.plug_delay = 0.0
        self.unpluggable_hosts: set[str] = set()
        self.port_resource_request_groups = True
        self.on_ports_changed: Callable[[], None] | None = None
