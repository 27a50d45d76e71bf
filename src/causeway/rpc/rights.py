"""What the account of one compute host has to be allowed in RabbitMQ, and no more.

A compute listens at its own queue, takes answers at its own, and calls its cell's conductor. oslo.messaging declares every
exchange and queue that it uses, so the account may configure them. RabbitMQ checks routing keys by topic permissions: when
something is published to a topic exchange (write), and when a queue is bound to one (read).

Not bound: answers go through the default exchange, where RabbitMQ looks at no routing key. See SECURITY.md.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass

from causeway.rpc import cell_conductor, super_conductor
from causeway.rpc.compute import TOPIC

# [oslo_messaging_rabbit] processname of computes. Another service on the same machine has another name, and so other queues.
PROCESS = "compute"


@dataclass(frozen=True)
class Rights:
    """Regular expressions, as RabbitMQ has them: names of queues and exchanges, and routing keys of one topic exchange."""

    configure: str
    write: str
    read: str
    exchange: str
    topic_write: str
    topic_read: str

    def definitions(self, account: str, virtual_host: str) -> dict[str, list[dict[str, str]]]:
        """As in a file of definitions that RabbitMQ imports."""
        of = {"user": account, "vhost": virtual_host}
        named = asdict(self)
        return {
            "permissions": [of | {name: named[name] for name in ("configure", "write", "read")}],
            "topic_permissions": [
                of | {"exchange": self.exchange, "write": self.topic_write, "read": self.topic_read},
            ],
        }


def of_compute(host: str, exchange: str) -> Rights:
    """The rights of a host's account in its cell's virtual host. ``exchange``: ``control_exchange`` of the cell's services."""
    own = re.escape(host)
    queues = [
        TOPIC,
        rf"{TOPIC}\.{own}",
        rf"{TOPIC}_fanout_{own}:{PROCESS}:[0-9]+",
        rf"reply_{own}:{PROCESS}:[0-9]+",
    ]
    topics = re.escape(exchange)
    # To all conductors: an answer that came late.
    late_answers = f"{super_conductor.TOPIC}_fanout"
    return Rights(
        configure=_any_of([*queues, topics, f"{TOPIC}_fanout", late_answers]),
        write=_any_of([*queues, topics, r"amq\.default", late_answers]),
        read=_any_of([*queues, topics, f"{TOPIC}_fanout"]),
        exchange=exchange,
        topic_write=_any_of([cell_conductor.TOPIC]),
        topic_read=_any_of([TOPIC, rf"{TOPIC}\.{own}"]),
    )


def _any_of(patterns: list[str]) -> str:
    return f"^({'|'.join(patterns)})$"


__all__ = ["PROCESS", "Rights", "of_compute"]
