"""What an API answered, as its users see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import openstack.exceptions
from keystoneauth1 import exceptions as keystone_errors

from tests.faults.clouds.site import Site


@dataclass(frozen=True)
class Answer:
    """``status`` None: there was none. ``text``: what was said to a caller that was refused."""

    status: int | None
    text: str = ""
    request_id: str | None = None

    @property
    def is_accepted(self) -> bool:
        return self.status is not None and self.status < 300

    @property
    def is_refused(self) -> bool:
        """Whether the answer said that nothing happens."""
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
