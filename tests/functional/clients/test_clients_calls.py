"""What all clients share: whose credentials are used, what is retried, what is counted, and what failures become."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from causeway import errors
from causeway.clients.identity import IdentityClient
from causeway.clients.image import ImageClient
from causeway.clients.network import NetworkClient
from causeway.clients.session import ServiceSessions, calls
from causeway.clients.volume import VolumeClient
from causeway.conf import new_config
from causeway.context import RequestContext
from causeway.devcloud import Fault

SHOW = "image GET /v2/images/{image_id}"


@pytest.fixture
def image(images: ImageClient, demo: RequestContext) -> str:
    made = images.create(demo, name="x").id
    calls.reset()
    return made


def test_users_see_what_is_theirs(images: ImageClient, other: RequestContext, image: str) -> None:
    with pytest.raises(errors.ImageNotFound):
        images.show(other, image)


def test_a_token_that_is_not_valid_any_more_is_not_replaced_while_a_request_is_served(
    images: ImageClient, demo: RequestContext, image: str
) -> None:
    demo.auth_token = "expired-meanwhile"
    for _again in range(2):
        with pytest.raises(errors.Unauthorized, match=f"to show image {image}. Log in again"):
            images.show(demo, image)
    assert calls.snapshot()[SHOW] == 2
    assert demo.checked == set()


def test_accepted_work_continues_with_our_own_credentials_for_what_was_checked(
    images: ImageClient, demo: RequestContext, image: str
) -> None:
    images.show(demo, image)
    assert demo.checked == {image}
    work = demo.for_work(frozenset(demo.checked))
    work.auth_token = "expired-meanwhile"
    calls.reset()
    assert images.show(work, image).id == image
    assert calls.snapshot()[SHOW] == 2
    images.show(work, image)
    assert calls.snapshot()[SHOW] == 3, "an expired token is tried once"
    unchecked = demo.for_work(frozenset({"another"}))
    unchecked.auth_token = "expired-meanwhile"
    with pytest.raises(errors.Unauthorized):
        images.show(unchecked, image)


def test_our_own_token_is_renewed_when_it_is_not_valid_any_more(
    images: ImageClient, nobody: RequestContext, image: str, around: Any
) -> None:
    images.show(nobody, image)
    around.cloud.tokens.clear_cache()
    with around.cloud.store.transaction() as session:
        for record in session.scalars(_tokens()):
            session.delete(record)
    assert images.show(nobody, image).id == image


def _tokens() -> Any:
    from sqlalchemy import select

    from causeway.devcloud.tables.identity import Token

    return select(Token)


def test_without_credentials_of_our_own_an_invalid_token_is_an_error(
    around: Any, demo: RequestContext, nobody: RequestContext, image: str
) -> None:
    conf = new_config(glance={"endpoint_override": around.cloud.config.base_url + "/image"})
    sessions = ServiceSessions(conf)
    images = ImageClient(sessions)
    assert images.show(demo, image).id == image
    demo.auth_token = "expired-meanwhile"
    with pytest.raises(errors.Unauthorized):
        images.show(demo, image)
    with pytest.raises(errors.ServiceFailed) as caught:
        images.show(nobody, image)
    assert "[glance]" in caught.value.details
    sessions.close()


@pytest.mark.parametrize("action", ["status", "drop", "lose_reply"])
@pytest.mark.expects_errors("^GET .* failed$")
def test_reading_calls_are_repeated_after_failures(
    images: ImageClient, demo: RequestContext, image: str, around: Any, action: Any
) -> None:
    around.cloud.faults.add(Fault(action, service="image", times=2))
    assert images.show(demo, image).id == image
    assert calls.snapshot()[SHOW] == 3


def test_a_service_that_stays_down_is_an_error_that_says_so(
    images: ImageClient, demo: RequestContext, image: str, around: Any
) -> None:
    around.cloud.faults.add(Fault("status", service="image", status=503))
    with pytest.raises(errors.ServiceFailed, match=f"image service failed when it was asked to show image {image}"):
        images.show(demo, image)
    assert calls.snapshot()[SHOW] == 4


def test_what_can_not_be_repeated_is_not(volumes: VolumeClient, demo: RequestContext, around: Any) -> None:
    around.cloud.faults.add(Fault("lose_reply", service="volume", method="POST", times=1))
    with pytest.raises(errors.ServiceFailed):
        volumes.create(demo, size=1)
    assert calls.snapshot()["volume POST /v3/volumes"] == 1


def test_a_service_that_hangs_is_abandoned(around: Any, demo: RequestContext, image: str) -> None:
    conf = new_config(
        glance={"endpoint_override": around.cloud.config.base_url + "/image", "timeout": 0.2, "num_retries": 0}
    )
    sessions = ServiceSessions(conf, transport=around.sessions.transport)
    around.cloud.faults.add(Fault("hang", service="image", seconds=60, times=1))
    with pytest.raises(errors.ServiceFailed, match="did not answer"):
        ImageClient(sessions).show(demo, image)
    around.cloud.faults.clear()
    sessions.close()


def test_a_service_that_does_not_listen_is_named(demo: RequestContext) -> None:
    conf = new_config(glance={"endpoint_override": "http://127.0.0.1:1", "num_retries": 0})
    sessions = ServiceSessions(conf)
    with pytest.raises(errors.ServiceFailed, match="image service did not answer"):
        ImageClient(sessions).show(demo, "x")
    sessions.close()


def test_hooks_see_calls_before_and_after(images: ImageClient, demo: RequestContext, image: str) -> None:
    seen: list[str] = []
    calls.before = lambda key: seen.append(f"before {key}")
    calls.after = lambda key: seen.append(f"after {key}")
    images.show(demo, image)
    assert seen == [f"before {SHOW}", f"after {SHOW}"]


def test_counts_are_exact_with_many_threads(images: ImageClient, demo: RequestContext, image: str) -> None:
    ready = threading.Barrier(8)

    def show(_number: int) -> str:
        ready.wait()
        return {images.show(demo, image).id for _ in range(5)}.pop()

    with ThreadPoolExecutor(8, thread_name_prefix="test") as pool:
        assert set(pool.map(show, range(8))) == {image}
    assert calls.snapshot() == {SHOW: 40}


def test_ids_of_users_stay_in_their_place_in_the_url(images: ImageClient, demo: RequestContext) -> None:
    with pytest.raises(errors.NotFound):
        images.show(demo, "../../v2/images?x=")


def test_errors_name_the_service_and_keep_what_it_said(network: NetworkClient, demo: RequestContext) -> None:
    with pytest.raises(errors.ServiceRefused) as caught:
        network._own(demo, "POST", "/v2.0/ports", "make a port", body={"port": 1})
    assert caught.value.message.startswith("The network service refused to make a port: ")


def test_projects_are_looked_up(identity: IdentityClient, around: Any, demo: RequestContext) -> None:
    admin = around.log_in("admin")
    identity.verify_project(admin, demo.project_id or "")
    with pytest.raises(errors.BadRequest, match="Project ID nonsense is not a valid project"):
        identity.verify_project(admin, "nonsense")


def test_projects_that_may_not_be_looked_up_are_taken_as_valid(
    identity: IdentityClient, demo: RequestContext, around: Any
) -> None:
    around.cloud.faults.add(Fault("status", service="identity", path="/projects/", status=403, times=1))
    identity.verify_project(demo, "somebody-elses")
    around.cloud.faults.add(Fault("status", service="identity", path="/projects/"))
    identity.verify_project(demo, "somebody-elses")
