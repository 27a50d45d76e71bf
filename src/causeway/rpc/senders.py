"""The messages that each sender of signed messages is allowed to send.

A service of the control plane may send any message: whoever controls such a service controls at least its cell anyway. The
compute of a host may send reports about its own host, as the calls to the cell's conductor declare it (``reporter``), and late
answers.
"""

from __future__ import annotations

from typing import Any

from causeway.rpc import cell_conductor
from causeway.rpc.declare import calls_of
from causeway.rpc.keys import Sender
from causeway.rpc.late_answers import NAMESPACE

_REPORTS = calls_of(cell_conductor.CellConductorClient)
# It goes to all listeners. Those that do not wait for its ticket, which is random, ignore it.
_LATE_ANSWER = (NAMESPACE, "late_answer")


def may_send(sender: Sender, topic: str, message: dict[str, Any]) -> bool:
    """Whether the sender is allowed to send this message to the servers of a topic."""
    if not sender.is_host:
        return True
    namespace, method = message.get("namespace"), message.get("method")
    if (namespace, method) == _LATE_ANSWER:
        return True
    if topic != cell_conductor.TOPIC or namespace is not None or not isinstance(method, str):
        return False
    declared = _REPORTS.get(method)
    if declared is None or declared.reporter is None:
        return False
    return all(_value_at(message.get("args"), path) == sender.name for path in declared.reporter)


def _value_at(arguments: Any, path: str) -> Any:
    """Returns the value in the arguments at a path such as ``report.host``; None if there is none."""
    for name in path.split("."):
        arguments = arguments.get(name) if isinstance(arguments, dict) else None
    return arguments
