"""An embedded cloud for each test module, or the one of ``--cloud`` for all; see `moves_cloud` for what tests do with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from causeway.conductor.service import ConductorService
from causeway.embedded.cloud import EmbeddedCloud
from causeway.faults import injector
from causeway.faults.injector import Scope
from tests.functional.servers.broken_hosts import force_down, stop
from tests.functional.servers.by_url import deployed, sweep
from tests.functional.servers.dead_hosts import caught_up, come_back
from tests.functional.servers.declared import Watch
from tests.functional.servers.moves_cloud import Cloud, another_conductor

__all__ = ["deployed"]


class ProcessDiedError(BaseException):
    """What nobody catches: as if the process had ended here."""


# Seconds: what fails in a test passes soon, so it is tried again soon.
FIRST_PAUSE = 0.05


def _paced(options: dict[str, Any]) -> dict[str, Any]:
    """The same options with a short first pause, if they have none."""
    overrides = options.get("overrides", {})
    moves = {"first_pause": FIRST_PAUSE, **overrides.get("moves", {})}
    return {**options, "overrides": {**overrides, "moves": moves}}


def _timeouts(options: dict[str, Any]) -> dict[str, Any]:
    wanted = options.get("overrides", {}).get("DEFAULT", {})
    return {name: wanted[name] for name in ("rpc_response_timeout",) if name in wanted}


def _patient(options: dict[str, Any]) -> dict[str, Any]:
    """The same options with the timeouts of a cloud that nothing is done to."""
    overrides = options.get("overrides", {})
    default = {name: value for name, value in overrides.get("DEFAULT", {}).items() if name not in _timeouts(options)}
    return {**options, "overrides": {**overrides, "DEFAULT": default}}


@pytest.fixture(scope="module")
def cloud_options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The arguments of a module's cloud: its ``CLOUD``. A module whose arguments depend on fixtures overrides this one."""
    return dict(getattr(request.module, "CLOUD", {}))


@pytest.fixture(scope="module")
def embedded(
    request: pytest.FixtureRequest,
    cloud_options: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
    deployed: Any,
) -> Iterator[Any]:
    wanted = cloud_options
    if deployed is not None:
        deployed.check(wanted)
        with sweep(deployed):
            yield deployed
        return
    options = {"cells": 2, "hosts_per_cell": 2, **wanted}
    folder = tmp_path_factory.mktemp("cloud")
    if "database_url" not in options:
        # Asked for here, because a cloud elsewhere needs none of it.
        request.getfixturevalue("put_state")(folder, options["cells"], options["hosts_per_cell"])
    request.getfixturevalue("short_pauses")
    cloud = EmbeddedCloud(folder, port=0, **_patient(_paced(options)))
    cloud.start()
    # Short for hosts that are dead, not for a cloud that starts.
    for name, seconds in _timeouts(options).items():
        cloud.conf.set_override(name, seconds)
    yield cloud
    # Tests may have started some again: those are not known to the cloud.
    for service in cloud.computes.values():
        service.stop()
    cloud.stop()


@pytest.fixture(scope="module")
def module_cloud(request: pytest.FixtureRequest, embedded: Any) -> Cloud:
    """What tests do with the cloud: a module's ``KIND``, or `Cloud`."""
    kind: type[Cloud] = getattr(request.module, "KIND", Cloud)
    return kind(embedded)


@pytest.fixture
def cloud(module_cloud: Cloud) -> Iterator[Cloud]:
    yield module_cloud
    module_cloud.heal()
    module_cloud.settle()
    module_cloud.clean()


@pytest.fixture
def dead(cloud: Cloud) -> Iterator[Callable[..., None]]:
    """Switches a host off, and says so if it is fenced; afterwards all are back."""
    stopped: set[str] = set()

    def die(host: str, *, fenced: bool = True) -> None:
        if host not in stopped:
            stop(cloud.embedded, host)
        stopped.add(host)
        force_down(cloud.embedded, host, fenced)

    yield die
    for host in list(cloud.parts.computes):
        if cloud.embedded.computes[host].host.stopping.is_set():
            come_back(cloud, host)
    if stopped:
        caught_up(cloud, stopped)


@pytest.fixture(scope="module")
def other(module_cloud: Cloud) -> Iterator[ConductorService]:
    """A second conductor, which takes over what the first one has lost."""
    with another_conductor(module_cloud) as conductor:
        yield conductor


@pytest.fixture
def at_point() -> Iterator[Callable[[str, Callable[[], None]], None]]:
    """Does something when a fault point is reached for the first time; the module's cloud has fault injection enabled."""
    found = injector._active
    assert found is not None

    def arm(point: str, act: Callable[[], None]) -> None:
        left = [act]

        def reached(name: str, _scope: Scope) -> None:
            if name == point and left:
                left.pop()()

        found.on_reach = reached

    yield arm
    found.on_reach = None


@pytest.fixture
def dies_at(at_point: Any) -> Callable[[str], None]:
    """The thread that reaches a point first ends there."""

    def die() -> None:
        raise ProcessDiedError

    return lambda point: at_point(point, die)


WATCH = Watch()


@pytest.fixture(autouse=True)
def declared() -> Iterator[None]:
    """Steps read, write and make what they say they do."""
    # Tests elsewhere put words into their mouths.
    WATCH.seen.clear()
    yield
    assert WATCH.seen.undeclared() == []
