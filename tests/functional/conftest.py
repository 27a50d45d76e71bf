"""What functional tests of the API share: a cloud of real databases in ``tmp_path`` and callers of its API.

- ``cloud``: API database, cell0 and two cells (SQLite files, or what ``--databases`` says), policy, and the services around it.
  The parts that are asked nothing by most resources are recorders: ``cloud.services.conductor.calls`` is the list of
  (method, arguments).
  A test module that needs the real part overrides the fixture of that name (``placement``, ``conductor``, ``images``,
  ``network``, ``volumes``).
- ``api``: a project member (user ``user``, project ``project``); ``admin``: an administrator; ``api.by("other:elsewhere")``:
  anybody else. ``api.get(path, version="2.96")`` -> `Answer` with ``status``, ``json``, ``headers``. Paths are below /v2.1.
- ``cloud.host("host1", "cell1")`` makes a compute host: mapping, service, compute node.
- ``cloud.server(cell="cell1", **fields)`` makes a server's record and mapping.
- ``cloud.option("quota", "cores", 4)`` sets an option for the test.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import falcon.testing
import pytest
from oslo_policy import opts as policy_opts

from causeway.api.app import build_app
from causeway.api.services import ApiServices
from causeway.conf import new_config
from causeway.embedded.cloud import EmbeddedCloud
from causeway.embedded.placement.local import local_placement
from causeway.model.flavor import Flavor
from causeway.model.host import CELL0_UUID, CellMapping, ComputeNode
from causeway.model.instance import Instance
from causeway.model.states import PowerState, VmState
from causeway.notify.notifier import Notifier
from causeway.policy import Enforcer
from causeway.sagas import retries
from causeway.store import schema
from causeway.store.api import cells as cell_records
from causeway.store.api import mappings
from causeway.store.cell import hosts, instances
from causeway.store.cells import Cells
from causeway.store.database import Database, utcnow
from tests.functional import logged_errors
from tests.functional.server_databases import ServerDatabases
from tests.functional.server_databases import server_databases as databases_of_server

LATEST = "2.104"


class Recorder:
    """Stands where a service is asked nothing of interest: notes every call and answers None, or what it was set to."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, Any] = {}

    def __getattr__(self, method: str) -> Any:
        if method.startswith("__"):
            raise AttributeError(method)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append((method, kwargs | ({"args": args} if args else {})))
            answer = self.answers.get(method)
            if isinstance(answer, Exception):
                raise answer
            return answer(*args, **kwargs) if callable(answer) else answer

        return call


@dataclass
class Answer:
    status: int
    json: Any
    headers: dict[str, str]
    text: str

    @property
    def message(self) -> str:
        """What an error body says."""
        (fault,) = self.json.values()
        assert fault["code"] == self.status
        return str(fault["message"])

    @property
    def fault(self) -> str:
        """The name of the fault, e.g. ``itemNotFound``."""
        (name,) = self.json
        return str(name)


class Caller:
    """Somebody who calls the API."""

    def __init__(self, app: Any, token: str, version: str = LATEST) -> None:
        self._app = app
        self._client = falcon.testing.TestClient(app)
        self.token = token
        self.version = version

    def by(self, token: str) -> Caller:
        """Somebody else: ``user:project``; the user ``admin`` is an administrator, ``service`` a service."""
        return Caller(self._app, token, self.version)

    def call(
        self,
        method: str,
        path: str,
        json: Any = None,
        *,
        version: str | None = None,
        headers: dict[str, str] | None = None,
        root: str = "/v2.1",
        body: str | bytes | None = None,
        query: str | None = None,
    ) -> Answer:
        sent = {"X-Auth-Token": self.token, "OpenStack-API-Version": f"compute {version or self.version}"}
        sent.update(headers or {})
        sent = {name: value for name, value in sent.items() if value}
        path, _mark, given = path.partition("?")
        more: dict[str, Any] = {"json": json} if json is not None else {"body": body} if body is not None else {}
        result = self._client.simulate_request(
            method, root + path, headers=sent, query_string=query or given or None, **more
        )
        is_json = "json" in result.headers.get("content-type", "") and result.content
        return Answer(result.status_code, result.json if is_json else None, dict(result.headers), result.text)

    def get(self, path: str, **options: Any) -> Answer:
        return self.call("GET", path, **options)

    def post(self, path: str, json: Any = None, **options: Any) -> Answer:
        return self.call("POST", path, json, **options)

    def put(self, path: str, json: Any = None, **options: Any) -> Answer:
        return self.call("PUT", path, json, **options)

    def delete(self, path: str, **options: Any) -> Answer:
        return self.call("DELETE", path, **options)


@dataclass
class Cloud:
    services: ApiServices
    cell_uuids: dict[str, str] = field(default_factory=dict)

    def cell(self, name: str) -> Database:
        return self.services.cells.database(self.cell_uuids[name])

    def option(self, group: str, name: str, value: Any) -> None:
        self.services.conf.set_override(name, value, group=None if group == "DEFAULT" else group)

    def host(self, name: str, cell: str = "cell1", **fields: Any) -> ComputeNode:
        """A compute host that has just reported."""
        database = self.cell(cell)
        cell_records.map_host(self.services.api, name, self.cell_uuids[cell])
        hosts.report_service(database, name, "nova-compute", "compute", 2)
        values: dict[str, Any] = {
            "hypervisor_type": "simulated",
            "hypervisor_version": 1000,
            "vcpus": 8,
            "memory_mb": 8192,
            "local_gb": 100,
            "host_ip": "192.0.2.1",
        }
        node = ComputeNode(uuid=str(uuid.uuid4()), host=name, hypervisor_hostname=name, **(values | fields))
        hosts.save_node(database, node)
        return next(found for found in hosts.list_nodes(database, host=name) if found.uuid == node.uuid)

    def server(self, cell: str = "cell1", **fields: Any) -> Instance:
        """A running server's record in a cell, with its mapping."""
        values: dict[str, Any] = {
            "uuid": str(uuid.uuid4()),
            "project_id": "project",
            "user_id": "user",
            "display_name": "server",
            "flavor": Flavor("1", "m1.tiny", vcpus=1, memory_mb=512, root_gb=1),
            "vm_state": VmState.ACTIVE,
            "power_state": PowerState.RUNNING,
            "launched_at": utcnow(),
            "created_at": utcnow(),
        }
        instance = Instance(**(values | fields))
        with self.services.api.write() as connection:
            mappings.insert_in(
                connection,
                mappings.InstanceMapping(
                    instance.uuid,
                    instance.project_id,
                    instance.user_id,
                    instance.created_at or utcnow(),
                    self.cell_uuids[cell],
                ),
            )
        with self.cell(cell).write() as connection:
            instances.insert(connection, instance)
        return instances.get(self.cell(cell), instance.uuid)


@pytest.fixture
def placement() -> Any:
    return Recorder("placement")


@pytest.fixture
def conductor() -> Any:
    return Recorder("conductor")


@pytest.fixture
def images() -> Any:
    return Recorder("images")


@pytest.fixture
def network() -> Any:
    return Recorder("network")


@pytest.fixture
def volumes() -> Any:
    return Recorder("volumes")


@pytest.fixture(scope="session")
def empty_databases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Databases with their schema and nothing in them; every test gets copies."""
    directory = tmp_path_factory.mktemp("databases")
    for kind in ("api", "cell"):
        database = Database(f"sqlite:///{directory}/{kind}.sqlite", kind)
        schema.sync(database, kind)
        # Closing the last connection writes everything into the one file.
        database.close()
    return directory


@pytest.fixture(scope="session")
def empty_placement(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a Placement that knows of nothing yet. Made while no cloud runs in this process."""
    path = tmp_path_factory.mktemp("placement") / "placement.sqlite"
    local_placement(path).close()
    return path


@pytest.fixture(scope="session")
def put_schemas(empty_databases: Path, empty_placement: Path) -> Callable[[Path, int], None]:
    """Puts databases with their schemas into the state directory of a new embedded cloud, with so many cells: to make schemas
    takes half the time of its start."""

    def put(folder: Path, cells: int) -> None:
        for name in ("api", "placement", *(f"cell{number}" for number in range(cells + 1))):
            source = empty_databases / f"{'api' if name == 'api' else 'cell'}.sqlite"
            shutil.copyfile(empty_placement if name == "placement" else source, folder / f"{name}.sqlite")

    return put


@pytest.fixture(scope="session")
def started_once(tmp_path_factory: pytest.TempPathFactory, put_schemas: Callable[[Path, int], None]) -> Path:
    """The state directory of an embedded cloud, two cells with two hosts each, that was started once and stopped."""
    folder = tmp_path_factory.mktemp("started-once")
    put_schemas(folder, 2)
    cloud = EmbeddedCloud(folder, port=0, cells=2, hosts_per_cell=2)
    cloud.start()
    cloud.stop()
    return folder


@pytest.fixture(scope="session")
def put_state(
    request: pytest.FixtureRequest, put_schemas: Callable[[Path, int], None]
) -> Callable[[Path, int, int], None]:
    """Prepares the state directory of a new embedded cloud, with so many cells and hosts in each: its first start takes twice the
    work of a second one."""

    def put(folder: Path, cells: int, hosts_per_cell: int) -> None:
        if (cells, hosts_per_cell) == (2, 2):
            shutil.copytree(request.getfixturevalue("started_once"), folder, dirs_exist_ok=True)
        else:
            put_schemas(folder, cells)

    return put


@pytest.fixture(scope="session")
def short_pauses() -> Iterator[None]:
    """Sagas of embedded clouds wait for hosts that are down, and for operators, as long as tests do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retries, "SHORTEST_PAUSE_WHILE_DOWN", 0.5)
        patch.setattr(retries, "LONGEST_HELD_PAUSE", 0.3)
        yield


@pytest.fixture(scope="session")
def server_databases(request: pytest.FixtureRequest) -> Iterator[ServerDatabases | None]:
    """Those of ``--databases``; None if they are SQLite files."""
    kind = request.config.getoption("--databases")
    if kind is None:
        yield None
        return
    with databases_of_server(kind) as databases:
        yield databases


@pytest.fixture
def database_urls(request: pytest.FixtureRequest, tmp_path: Path, server_databases: ServerDatabases | None) -> Any:
    """name -> URL of a database that has its schema and nothing in it."""
    if server_databases is not None:
        server_databases.empty()
        return server_databases.url
    empty: Path = request.getfixturevalue("empty_databases")

    def url(name: str) -> str:
        (tmp_path / f"{name}.sqlite").write_bytes((empty / f"{'api' if name == 'api' else 'cell'}.sqlite").read_bytes())
        return f"sqlite:///{tmp_path}/{name}.sqlite"

    return url


@pytest.fixture(autouse=True)
def only_expected_errors_are_logged(request: pytest.FixtureRequest) -> Iterator[None]:
    with logged_errors.only_expected(request.node):
        yield


@pytest.fixture
def cloud(
    tmp_path: Path, database_urls: Any, placement: Any, conductor: Any, images: Any, network: Any, volumes: Any
) -> Iterator[Cloud]:
    conf = new_config(api={"auth_strategy": "noauth2"})
    policy_opts.set_defaults(conf)
    # Not the policy of this machine, if it has one.
    conf.set_override("policy_file", str(tmp_path / "policy.yaml"), group="oslo_policy")
    api = Database(database_urls("api"), "api")
    uuids: dict[str, str] = {}
    for name in ("cell0", "cell1", "cell2"):
        uuids[name] = CELL0_UUID if name == "cell0" else str(uuid.uuid4())
        cell_records.save_cell(api, CellMapping(uuids[name], name, "none:///", database_urls(name)))
    cells = Cells(api)
    services = ApiServices(
        conf=conf,
        api=api,
        cells=cells,
        conductor=conductor,
        placement=placement,
        images=images,
        network=network,
        volumes=volumes,
        enforcer=Enforcer(conf),
        notifier=Notifier(None, "nova-api:controller", conf),
    )
    yield Cloud(services, uuids)
    cells.close()
    api.close()


@pytest.fixture
def app(cloud: Cloud) -> Any:
    return build_app(cloud.services)


@pytest.fixture
def api(app: Any) -> Caller:
    """A member of the project ``project``."""
    return Caller(app, "user:project")


@pytest.fixture
def admin(app: Any) -> Caller:
    """An administrator, in the project ``admin``."""
    return Caller(app, "admin:admin")
