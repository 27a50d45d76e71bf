"""The agent in a guest (qemu-ga): it keeps the guest's file systems still for a moment, with all that was written on the disk.

It also sets passwords, and the clock of a guest that stood still, and returns unused blocks of file systems to the disks.

A guest whose file systems stand still for long hangs. So a note (the file ``frozen-UUID``) is written before they are frozen, and
whoever finds the note thaws them: the one who froze them, the next one who works on the guest's disks, or the host at its start.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from causeway import durable
from causeway.errors import GuestFailed
from causeway.model.instance import Instance
from causeway.model.states import PowerState
from causeway.virt import quiescing
from causeway.virt.libvirt import power
from causeway.virt.libvirt.connection import Connection
from causeway.virt.libvirt.guest_xml.domain_xml import agent_listens
from causeway.virt.libvirt.presence import refuse_in_transit

LOG = logging.getLogger(__name__)

# Seconds for an answer of the agent, which first flushes what the guest has not written yet.
_ANSWER_SECONDS = 10
# Seconds for a trim of all file systems. Work on the guest that needs its host's lock, such as a stop, waits for it.
_TRIM_SECONDS = 60
_THAW_TRIES = 3


def set_password(connection: Connection, instance: Instance, user: str, password: str) -> None:
    """Has the agent set a user's password. Raises `GuestFailed` if no agent answers, or if it refuses."""
    uuid = instance.uuid

    def set_it(hypervisor: Any) -> None:
        domain = power.find(hypervisor, uuid)
        if domain is None or not agent_listens(domain.XMLDesc()):
            raise GuestFailed(f"There is no agent in the guest of server {uuid} that answers: no password can be set.")
        domain.agentSetResponseTimeout(_ANSWER_SECONDS, 0)
        domain.setUserPassword(user, password)

    if not quiescing.has_agent(instance):
        raise GuestFailed(f"The image of server {uuid} says nothing of an agent in it (hw_qemu_guest_agent).")
    # Not over the shared connection: an agent that hangs would keep others waiting. Not repeated: the agent would set it twice.
    connection.call_aside(f"set a password in guest {uuid}", set_it)


def trim_guest(connection: Connection, instance: Instance) -> None:
    """Has the agent return unused blocks of the file systems to the disks.

    Raises `GuestFailed` if the guest is on its way to another host, if no agent answers, or if it is not done in time.
    """
    uuid = instance.uuid

    def trim_it(hypervisor: Any) -> None:
        domain = power.find(hypervisor, uuid)
        if domain is None or power.power_state_of(domain) is not PowerState.RUNNING:
            raise GuestFailed(f"The guest of server {uuid} does not run here: it can't be trimmed.")
        refuse_in_transit(domain)
        if not agent_listens(domain.XMLDesc()):
            raise GuestFailed(f"There is no agent in the guest of server {uuid} that answers: it can't be trimmed.")
        domain.agentSetResponseTimeout(_TRIM_SECONDS, 0)
        domain.fSTrim(None, 0, 0)

    if not quiescing.has_agent(instance):
        raise GuestFailed(f"The image of server {uuid} says nothing of an agent in it (hw_qemu_guest_agent).")
    # The hypervisor's own time ends first, and its error says that it was the agent who did not answer.
    timeout = _TRIM_SECONDS + _ANSWER_SECONDS
    connection.call_aside(f"trim the file systems of guest {uuid}", trim_it, timeout=timeout)


def set_clock(connection: Connection, uuid: str) -> None:
    """Has the agent set the guest's clock, which stood still with the guest. Without an agent that answers it stays wrong."""

    def set_it(hypervisor: Any) -> None:
        domain = power.find(hypervisor, uuid)
        if domain is not None and agent_listens(domain.XMLDesc()):
            domain.agentSetResponseTimeout(_ANSWER_SECONDS, 0)
            seconds, rest = divmod(time.time_ns(), 10**9)
            domain.setTime({"seconds": seconds, "nseconds": rest})

    try:
        # Not over the shared connection: an agent that hangs would keep others waiting.
        connection.call_aside(f"set the clock of guest {uuid}", set_it)
    except GuestFailed as failure:
        LOG.warning("The clock of guest %s may be late: %s", uuid, failure.details or failure.message)


class Agent:
    """The agents in one host's guests. ``directory``: where the notes are."""

    def __init__(self, connection: Connection, directory: Path) -> None:
        self._connection = connection
        self._directory = directory

    @contextmanager
    def still(self, instance: Instance) -> Iterator[None]:
        """Keeps the guest's file systems still for the time of the block, if its image names an agent and the agent answers.

        Raises `WarmCopyImpossible` if they don't stand still and the image requires it.
        """
        uuid = instance.uuid
        why_not = self._freeze(uuid) if quiescing.has_agent(instance) else "its image says nothing of an agent"
        if why_not:
            if quiescing.is_required(instance):
                raise quiescing.refused(instance, why_not)
            yield
            return
        try:
            yield
        finally:
            self.try_to_thaw(uuid, _THAW_TRIES)

    def _freeze(self, uuid: str) -> str:
        """Freezes the guest's file systems. Returns why they don't stand still; empty: they do."""

        def is_there(hypervisor: Any) -> bool:
            domain = power.find(hypervisor, uuid)
            return domain is not None and agent_listens(domain.XMLDesc())

        def freeze(hypervisor: Any) -> None:
            domain = hypervisor.lookupByUUIDString(uuid)
            domain.agentSetResponseTimeout(_ANSWER_SECONDS, 0)
            domain.fsFreeze()

        if not self.try_to_thaw(uuid) or not self._connection.call(f"find the agent of {uuid}", is_there, again=True):
            return "there is no agent that answers"
        durable.write(self._note(uuid), b"")
        try:
            self._connection.call(f"freeze the file systems of guest {uuid}", freeze)
        except GuestFailed as failure:
            # The agent may have frozen some of them, or may answer late.
            self.try_to_thaw(uuid)
            return failure.details or failure.message
        return ""

    def try_to_thaw(self, uuid: str, tries: int = 1) -> bool:
        """Thaws file systems that a note names. False: that failed, and is tried again the next time."""

        def thaw(hypervisor: Any) -> None:
            domain = power.find(hypervisor, uuid)
            if domain is not None and power.power_state_of(domain) not in power.OFF:
                domain.agentSetResponseTimeout(_ANSWER_SECONDS, 0)
                domain.fsThaw()

        if not self._note(uuid).exists():
            return True
        why = ""
        for _ in range(tries):
            try:
                self._connection.call(f"thaw the file systems of guest {uuid}", thaw, again=True)
            except GuestFailed as failure:
                why = failure.details or failure.message
                continue
            durable.delete(self._note(uuid))
            return True
        LOG.error("The file systems of guest %s may stand still: %s", uuid, why)
        return False

    def thaw_all(self) -> None:
        """Thaws the file systems that an earlier process left frozen."""
        for note in self._directory.glob("frozen-*"):
            self.try_to_thaw(note.name.removeprefix("frozen-"))

    def discard(self, uuid: str) -> None:
        """Called when nobody works on this guest's disks any more: thaws them, and deletes the note in any case."""
        self.try_to_thaw(uuid)
        durable.delete(self._note(uuid))

    def _note(self, uuid: str) -> Path:
        return self._directory / f"frozen-{uuid}"
