"""``causeway adopt``: what taking over a cloud that runs Nova needs.

Each file has a command. One that needs an extra imports what is in it when it is used: hosts have no databases.
"""

from __future__ import annotations

from causeway.cli.adopt import check, finish, freeze, hand_back, host, host_config, importing, look, options
from causeway.cli.adopt.group import adopt

__all__ = ["adopt", "check", "finish", "freeze", "hand_back", "host", "host_config", "importing", "look", "options"]
