"""The rights that the account of one compute host needs in RabbitMQ, and no more.

A compute listens at one queue of its own (or two, where Nova was before), takes answers at another, and calls its cell's
conductor. oslo.messaging declares every exchange and queue that it uses, so the account needs the right to configure them.
RabbitMQ checks routing keys by topic permissions when an account publishes to a topic exchange (write), and when it binds a queue
to one (read).

These rights do not limit answers: they go through the default exchange, where RabbitMQ checks no routing keys. See SECURITY.md.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass

from causeway.rpc import adopting, cell_conductor, super_conductor
from causeway.rpc.compute import TOPIC

# At which a compute listens.
TOPICS = (TOPIC, adopting.TOPIC)

# The option [oslo_messaging_rabbit] processname of computes. Each service of a machine has its own name, and so its own queues.
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
        """Returns the rights in the form of a file of definitions, which RabbitMQ imports."""
        of = {"user": account, "vhost": virtual_host}
        named = asdict(self)
        return {
            "permissions": [of | {name: named[name] for name in ("configure", "write", "read")}],
            "topic_permissions": [
                of | {"exchange": self.exchange, "write": self.topic_write, "read": self.topic_read},
            ],
        }


def of_compute(host: str, exchange: str) -> Rights:
    """Returns the rights of a host's account in its cell's virtual host.

    ``exchange``: the option ``control_exchange`` of the cell's services.
    """
    own = re.escape(host)
    listened, fanouts = [], [f"{topic}_fanout" for topic in TOPICS]
    for topic in TOPICS:
        listened += [topic, rf"{topic}\.{own}"]
    queues = [
        *listened,
        *(rf"{fanout}_{own}:{PROCESS}:[0-9]+" for fanout in fanouts),
        rf"reply_{own}:{PROCESS}:[0-9]+",
    ]
    topics = re.escape(exchange)
    # The exchange through which late answers go to all conductors.
    late_answers = f"{super_conductor.TOPIC}_fanout"
    return Rights(
        configure=_any_of([*queues, topics, *fanouts, late_answers]),
        write=_any_of([*queues, topics, r"amq\.default", late_answers]),
        read=_any_of([*queues, topics, *fanouts]),
        exchange=exchange,
        topic_write=_any_of([cell_conductor.TOPIC]),
        topic_read=_any_of(listened),
    )


def _any_of(patterns: list[str]) -> str:
    return f"^({'|'.join(patterns)})$"


__all__ = ["PROCESS", "Rights", "of_compute"]
