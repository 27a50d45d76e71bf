"""Typed calls and casts between services, over oslo.messaging. The URL decides whether they go through RabbitMQ or memory.

- `transport` makes transports by URL, and closes them at the end (`Transports`, `Transport`).
- `server` listens: `RpcServer(transport, topic, host, [endpoint])`. An endpoint is any object; each of its public methods
  `def name(self, context, *, argument: Type, ...) -> Type` can be called. `endpoint` reads the types once, converts
  arguments and results, and refuses what does not fit.
- `declare` makes clients: a method without a body declares a message. The clients are `compute`, `conductor`,
  `cell_conductor`, `super_conductor` and `scheduler`; each names its topic and the history of its versions.
- `client` sends for them: `RpcClient(transport, topic).call(context, "name", result=Type, server=host, argument=...)`.
- `signatures` says who sent a message, if there are keys (`keys`) and a rule who may send what (`senders`).
- `memory` is the in-memory driver, `counters` counts what was sent.

Bodies are JSON. Dataclasses, datetimes, enums, lists, dicts and bytes are converted by their types; an ``Any`` must be plain
JSON. A `CausewayError` raised by a method is raised again at the caller as the same class.
"""

from causeway.rpc.client import RpcClient
from causeway.rpc.endpoint import expose
from causeway.rpc.server import RpcServer
from causeway.rpc.transport import Outgoing, Transport, Transports, Verdict

__all__ = ["Outgoing", "RpcClient", "RpcServer", "Transport", "Transports", "Verdict", "expose"]
