"""What users do: they make servers, move them, and are answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import openstack.exceptions
from keystoneauth1 import exceptions as keystone_errors

from causeway.model.states import VmState

from . import look
from .flows import Flow
from .site import Site, until


@dataclass(frozen=True)
class Answer:
    """``status`` None: there was none. ``text``: what was said to who was refused."""

    status: int | None
    text: str = ""
    request_id: str | None = None

    @property
    def is_accepted(self) -> bool:
        return self.status is not None and self.status < 300

    @property
    def is_refused(self) -> bool:
        """Whether the user was told that nothing happens."""
        return self.status is not None and not self.is_accepted

    @property
    def is_lost(self) -> bool:
        """Whether nobody said what became of it: it may have been done."""
        return self.status is None or self.status >= 500

    @property
    def kind(self) -> str:
        return "accepted" if self.is_accepted else "lost" if self.is_lost else "refused"


ACCEPTED = Answer(202)
# Seconds for one answer; a cloud that is killed meanwhile gives none at all.
ANSWER_TIMEOUT = 30


def answer_of(work: Callable[[], Any]) -> Answer:
    """What a call to an API was answered."""
    try:
        work()
    except openstack.exceptions.HttpException as refusal:
        return Answer(refusal.status_code, str(refusal))
    except keystone_errors.HttpError as refusal:
        return Answer(refusal.http_status, str(refusal))
    except (openstack.exceptions.SDKException, keystone_errors.ClientException) as broken:
        return Answer(None, str(broken))
    return ACCEPTED


def call(
    site: Site, method: str, path: str, body: Any = None, *, by: Any = None, microversion: str | None = None
) -> Answer:
    """One call to the Compute API as a user, made once: who tries again does not know what came of the first.

    ``by``: the connection of somebody else.
    """
    try:
        answer = (by or site.member).compute.request(
            path,
            method,
            json=body,
            raise_exc=False,
            connect_retries=0,
            timeout=ANSWER_TIMEOUT,
            **({} if microversion is None else {"microversion": microversion}),
        )
    except (openstack.exceptions.SDKException, keystone_errors.ClientException) as broken:
        return Answer(None, str(broken))
    return Answer(answer.status_code, answer.text, answer.headers.get("x-openstack-request-id"))


def boot(site: Site, flow: Flow, count: int) -> list[str]:
    fields: dict[str, Any] = {"image_id": site.image_id}
    if flow.backing == "volume":
        root = {
            "boot_index": 0,
            "source_type": "image",
            "destination_type": "volume",
            "uuid": site.image_id,
            "volume_size": 1,
            "delete_on_termination": True,
        }
        fields = {"block_device_mapping": [root]}
    made = [
        site.member.compute.create_server(
            name=f"server{number}", flavor_id=flow.flavors[0], networks=[{"uuid": site.network_id}], **fields
        ).id
        for number in range(count)
    ]
    for uuid in made:
        wait(site, uuid, VmState.ACTIVE)
        site.guests.mark(uuid, mark(uuid))
    return made


def mark(uuid: str) -> str:
    return f"data of {uuid}"


def wait(site: Site, uuid: str, state: VmState) -> None:
    found = until(
        lambda: look.record(site, uuid),
        lambda found: found is not None and found.vm_state in (state, VmState.ERROR) and found.task_state is None,
    )
    assert found is not None and found.vm_state is state, site.admin.compute.get_server(uuid)


def ask(site: Site, flow: Flow, operation: str, uuid: str, *, flavor: str | None = None) -> Answer:
    """Asks for the operation as a user."""
    compute = site.member.compute
    return answer_of(
        {
            "resize": lambda: compute.resize_server(uuid, flavor or flow.flavors[1]),
            "confirm": lambda: compute.confirm_server_resize(uuid),
            "revert": lambda: compute.revert_server_resize(uuid),
        }[operation]
    )


def prepare(site: Site, flow: Flow, count: int) -> list[str]:
    servers = boot(site, flow, count)
    if flow.operation != "resize":
        for uuid in servers:
            ask(site, flow, "resize", uuid)
        for uuid in servers:
            wait(site, uuid, VmState.RESIZED)
            until(lambda uuid=uuid: look.is_settled(site, uuid), bool)  # type: ignore[misc]
            if flow.backing == "volume":
                attach(site, uuid)
    return servers


def attach(site: Site, uuid: str) -> None:
    """A volume that only the target knows so far."""
    volume = site.member.block_storage.create_volume(size=1, name=f"data of {uuid}")
    until(lambda: site.member.block_storage.get_volume(volume.id).status, lambda status: status == "available")
    site.member.compute.create_volume_attachment(uuid, volume_id=volume.id, delete_on_termination=True)
