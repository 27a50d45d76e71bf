"""Sentences for a server's owner that say why a move failed, without names and addresses of hosts, which only operators see."""

from __future__ import annotations

import re

from causeway.moves.memory import MoveMemory

# The length of the column for an action's message, in characters.
LONGEST = 255

_ADDRESS = re.compile(r"\b[a-z+]+://\S+|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b")


def for_members(message: str, memory: MoveMemory) -> str:
    """Returns the message with each name of a host replaced by the host's part in the move (source, target)."""
    for name, meaning in sorted(_hosts(memory).items(), key=lambda pair: len(pair[0]), reverse=True):
        mention = rf"(?:\b(?:[Cc]ompute )?[Hh]ost )?(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)"
        message = re.sub(mention, meaning, message)
    message = _ADDRESS.sub("an address", message)
    return (message[:1].upper() + message[1:])[:LONGEST]


def _hosts(memory: MoveMemory) -> dict[str, str]:
    others = [*memory.bound_hosts, *(choice.host for choice in memory.alternates), memory.requested_host]
    found = {name: "another host" for name in others if name}
    if memory.selection is not None:
        found |= {memory.selection.host: "the target host", memory.selection.hypervisor_hostname: "the target host"}
    found |= {memory.source_host: "the source host", memory.source_hypervisor or memory.source_host: "the source host"}
    return found
