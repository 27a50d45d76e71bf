"""Users do what they like, in any order, on several servers at once, while services around fail, steps of moves fail, and
conductors hang until another has taken their moves over.

Whatever comes of it: when everything has settled, everything agrees (`causeway audit`), and every server that was not deleted
is there exactly once, in a state that its user can work with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from openstack import exceptions

from causeway.audit import audit_embedded
from causeway.conductor.service import ConductorService
from causeway.embedded.cloud import EmbeddedCloud
from causeway.faults.points import compute_points, step_points
from causeway.roles.conductor import make_conductor
from tests.functional.servers.moves_cloud import Cloud, until

SERVERS = st.sampled_from(["first", "second", "third"])
FLAVORS = st.sampled_from(["gen1.small", "gen2.small", "any.small", "any.medium"])
SETTLED = {"ACTIVE", "SHUTOFF", "VERIFY_RESIZE", "ERROR"}
# What may go wrong once: (action, path, method, service).
FAULTS = st.sampled_from(
    [
        ("status", "/file$", "PUT", "image"),
        ("drop", "/file$", "PUT", "image"),
        ("drop", "/file$", "GET", "image"),
        ("status", "/bindings$", "POST", "network"),
        ("lose_reply", "/bindings$", "POST", "network"),
        ("status", "/activate$", "PUT", "network"),
        ("lose_reply", "/activate$", "PUT", "network"),
        ("status", "/attachments$", "POST", "volume"),
        ("lose_reply", "/attachments$", "POST", "volume"),
        ("status", "/attachments/", "PUT", "volume"),
        ("lose_reply", "/attachments/", "DELETE", "volume"),
    ]
)

# Where a step fails, or a conductor hangs for longer than its lease.
STEPS = st.sampled_from([*step_points(), *compute_points()])

_folders: list[Path] = []
_clouds: list[Cloud] = []
_conductors: list[ConductorService] = []


def the_cloud() -> Cloud:
    """One cloud for all runs: each leaves it empty."""
    if not _clouds:
        embedded = EmbeddedCloud(
            _folders[0],
            port=0,
            cells=2,
            hosts_per_cell=2,
            overrides={
                "fault_injection": {"enabled": True},
                "moves": {"lease": 2.0, "first_pause": 0.05, "stuck_retry_interval": 0.2},
                "DEFAULT": {"vif_plugging_timeout": 5},
                "quota": {"cores": -1, "ram": -1, "instances": -1},
            },
        )
        embedded.start()
        other = make_conductor(embedded.around, embedded.api_database, embedded.cells, "conductor2", of_cells=[])
        other.start()
        other.recover()
        _clouds.append(Cloud(embedded))
        _conductors.append(other)
    return _clouds[0]


@pytest.fixture(scope="module", autouse=True)
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    _folders[:] = [tmp_path_factory.mktemp("cloud")]
    yield
    while _conductors:
        _conductors.pop().stop()
    while _clouds:
        _clouds.pop().parts.stop()


class Users(RuleBasedStateMachine):
    """What users ask for. A refusal (409, 400, 403, 404) is an answer like any other; a 500 is none."""

    def __init__(self) -> None:
        super().__init__()
        self.cloud = the_cloud()
        self.ids: dict[str, str] = {}
        self.volumes: list[str] = []

    def ask(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except (exceptions.ConflictException, exceptions.NotFoundException, exceptions.BadRequestException):
            return None
        except exceptions.ForbiddenException:
            return None
        except exceptions.HttpException as failure:
            # A service around us refused or broke: the answer says so.
            assert failure.status_code in (500, 503) and "Unexpected API Error" not in str(failure), failure
            return None

    @initialize()
    def begin(self) -> None:
        for name in ("first", "second"):
            self.ids[name] = self.cloud.boot(name, flavor="any.small").id
        self.volumes = [self.cloud.volume(name="data").id]

    @rule(name=SERVERS)
    def create(self, name: str) -> None:
        if name not in self.ids:
            made = self.cloud.member.compute.create_server(
                name=name,
                flavor_id="any.small",
                image_id=self.cloud.image_id,
                networks=[{"uuid": self.cloud.network_id}],
            )
            self.ids[name] = made.id

    @rule(name=SERVERS, flavor=FLAVORS)
    def resize(self, name: str, flavor: str) -> None:
        self.act(name, lambda compute, uuid: compute.resize_server(uuid, flavor))

    @rule(name=SERVERS)
    def confirm(self, name: str) -> None:
        self.act(name, lambda compute, uuid: compute.confirm_server_resize(uuid))

    @rule(name=SERVERS)
    def revert(self, name: str) -> None:
        self.act(name, lambda compute, uuid: compute.revert_server_resize(uuid))

    @rule(name=SERVERS)
    def stop(self, name: str) -> None:
        self.act(name, lambda compute, uuid: compute.stop_server(uuid))

    @rule(name=SERVERS)
    def start(self, name: str) -> None:
        self.act(name, lambda compute, uuid: compute.start_server(uuid))

    @rule(name=SERVERS)
    def reboot(self, name: str) -> None:
        self.act(name, lambda compute, uuid: compute.reboot_server(uuid, "HARD"))

    @rule(name=SERVERS)
    def attach(self, name: str) -> None:
        self.act(name, lambda compute, uuid: compute.create_volume_attachment(uuid, volume_id=self.volumes[0]))

    @rule(name=SERVERS)
    def detach(self, name: str) -> None:
        self.act(name, lambda compute, uuid: compute.delete_volume_attachment(uuid, self.volumes[0]))

    @rule(name=SERVERS)
    def cancel(self, name: str) -> None:
        if name in self.ids:
            compute = self.cloud.admin.compute
            for migration in self.ask(lambda: list(compute.server_migrations(self.ids[name]))) or []:
                path = f"/servers/{self.ids[name]}/migrations/{migration.id}"
                answer = compute.delete(path, microversion="2.80")
                assert answer.status_code in (202, 404, 409), answer.text

    @rule(name=SERVERS)
    def delete(self, name: str) -> None:
        if self.act(name, lambda compute, uuid: compute.delete_server(uuid)):
            del self.ids[name]

    @rule(fault=FAULTS)
    def break_something(self, fault: tuple[str, str, str, str]) -> None:
        action, path, method, service = fault
        self.cloud.fail(action, path, method=method, service=service, times=1)

    @rule(point=STEPS, rule=st.sampled_from([{"error": True}, {"hang": 3.0}]))
    def break_a_step(self, point: str, rule: dict[str, Any]) -> None:
        file = self.cloud.parts.state.path / "faults.yaml"
        file.with_name("faults.yaml.hits").unlink(missing_ok=True)
        new = file.with_suffix(".new")
        new.write_text(yaml.safe_dump({point: rule | {"times": 1}}))
        new.replace(file)

    @rule(name=SERVERS)
    def migrate(self, name: str) -> None:
        if name in self.ids:
            self.ask(lambda: self.cloud.admin.compute.migrate_server(self.ids[name]))

    @rule()
    def wait(self) -> None:
        self.cloud.settle()

    def act(self, name: str, call: Callable[[Any, str], Any]) -> bool:
        if name not in self.ids:
            return False
        self.ask(lambda: call(self.cloud.member.compute, self.ids[name]))
        return True

    def teardown(self) -> None:
        cloud = self.cloud
        conductors = [cloud.parts.conductor, *_conductors]
        if not self.ids and not self.volumes:
            return
        cloud.heal()
        (cloud.parts.state.path / "faults.yaml").unlink(missing_ok=True)
        cloud.settle()
        listed = until(
            lambda: list(cloud.admin.compute.servers(all_projects=True)),
            lambda found: (
                {server.id for server in found} == set(self.ids.values())
                and all(server.status in SETTLED and server.task_state is None for server in found)
            ),
            "every server to settle",
        )
        assert len(listed) == len(self.ids)
        cloud.settle()
        # Who hung has undone what came too late.
        until(lambda: any(each._keeper.is_busy for each in conductors), lambda busy: not busy, "conductors to rest")
        assert audit_embedded(cloud.parts).disagreements == []
        cloud.clean()
        assert audit_embedded(cloud.parts).disagreements == []


Users.TestCase.settings = settings(
    max_examples=12,
    stateful_step_count=20,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestUsers = pytest.mark.long(pytest.mark.timeout(300)(Users.TestCase))
