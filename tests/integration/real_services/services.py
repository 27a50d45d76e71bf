"""Keystone, Glance, Neutron, Cinder and Placement, started in the order in which they need one another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import openstack
import openstack.exceptions
import requests
import yaml

from tests.integration.real_services import configuration, policies
from tests.integration.real_services.configuration import CATALOG, PASSWORD, REGION, Addresses, Options, render
from tests.integration.real_services.machine import VENV, Machine
from tests.ports import free_port

HERE = Path(__file__).parent
NAMES = ("keystone", "placement", "glance", "neutron", "cinder")
WSGI = {
    "keystone": "keystone.wsgi.api",
    "placement": "placement.wsgi.api",
    "glance": "glance.wsgi.api",
    "neutron": "neutron.wsgi.api",
    "cinder": "cinder.wsgi.api",
}
_NEUTRON = ("--config-file", "etc/neutron/neutron.conf", "--config-file", "etc/neutron/ml2.ini")
_CINDER = ("--config-file", "etc/cinder/cinder.conf")
WORKERS = {
    "neutron-rpc-server": _NEUTRON,
    "neutron-periodic-workers": _NEUTRON,
    "cinder-scheduler": _CINDER,
    "cinder-volume": _CINDER,
}
ACCOUNTS = {"demo": "demo", "admin": "admin"}
GROUPS = ("placement", "glance", "neutron", "cinder", "service_user")


class RealServices:
    """``new_database`` makes an empty database of a name and gives its URL, ``queue`` is a URL of RabbitMQ.

    ``storage``: the names of Cinder's backends, each with an NFS share of its own.
    """

    #: the process that reports for the hosts (one of them)
    agents = "agents"

    def __init__(
        self,
        directory: Path,
        *,
        new_database: Callable[[str], str],
        queue: str,
        compute_url: str,
        hosts: Iterable[str],
        token_seconds: int = 3600,
        address: str = "127.0.0.1",
        storage: Sequence[str] = ("nfs",),
    ) -> None:
        self.directory = directory
        self.machine = Machine(directory)
        self._hosts = tuple(hosts)
        self._compute_url = compute_url
        self._token_seconds = token_seconds
        self.storage = tuple(storage)
        self.addresses = Addresses(
            ports={name: free_port() for name in NAMES},
            databases={name: new_database(name) for name in NAMES},
            queue=queue,
            host=address,
        )

    def start(self) -> None:
        """Ready for use when this returns: accounts, catalog, agents of all hosts."""
        self._configure()
        self._make_databases()
        for name in NAMES:
            self.start_api(name)
        for name in NAMES:
            self.await_api(name)
        self._fill_catalog()
        for command in WORKERS:
            self.start_worker(command)
        self.start_agents()
        self._await_workers()

    def start_identity(self) -> None:
        """Only Keystone, with an administrator and nothing else."""
        self._write_keystone()
        self._make_keystone()
        self.start_api("keystone")
        self.await_api("keystone")

    def start_agents(self) -> None:
        """Neutron's agents of the hosts: stand-ins here."""
        self.machine.start(
            "agents", [VENV / "bin/python", HERE / "agents.py", "etc/neutron/neutron.conf", *self._hosts]
        )

    def start_worker(self, command: str) -> None:
        """What works for an API, and is asked over the queue."""
        self.machine.start(command, [VENV / "bin" / command, *WORKERS[command]])

    def start_api(self, name: str) -> None:
        arguments = "--config-file etc/cinder/cinder.conf" if name == "cinder" else ""
        where = self.directory / "etc" / name
        places = {
            "OS_KEYSTONE_CONFIG_FILES": str(self.directory / "etc/keystone/keystone.conf"),
            "OS_PLACEMENT_CONFIG_DIR": str(where),
            "OS_GLANCE_CONFIG_DIR": str(where),
            "OS_NEUTRON_CONFIG_DIR": str(where),
            "OS_NEUTRON_CONFIG_FILES": "neutron.conf;ml2.ini",
        }
        self.machine.start(
            name,
            [
                *(VENV / "bin/gunicorn", "--chdir", self.directory, "--pythonpath", HERE),
                *("--worker-class", "gthread", "--workers", "1", "--threads", "8"),
                # Clients keep their connections for a while.
                *("--timeout", "300", "--keep-alive", "65"),
                *("--bind", f"{self.addresses.host}:{self.addresses.ports[name]}", "wsgi:application"),
            ],
            {
                "SERVICE": WSGI[name],
                "SERVICE_ARGUMENTS": arguments,
                "SCRIPT_NAME": configuration.PREFIXES.get(name, ""),
                **places,
                **self._environment(name),
            },
        )

    def await_api(self, name: str) -> None:
        def answers() -> bool:
            try:
                status = requests.get(self.addresses.url(name), timeout=10).status_code
            except requests.RequestException:
                return False
            return status in (200, 300, 401)

        self.machine.await_that(answers, name)

    def stop(self) -> None:
        self.machine.stop()
        for mount in (self.directory / "state/nfs-mnt").glob("*"):
            self.machine.run(["umount", mount])

    def export(self, storage: str) -> Path:
        """The directory in which a storage of Cinder's keeps its volumes."""
        return self.directory / f"{storage}-export"

    def connection(self, user: str = "admin", project: str | None = None) -> openstack.connection.Connection:
        return openstack.connect(
            auth_url=self.addresses.auth_url,
            username=user,
            password=PASSWORD,
            project_name=project or ACCOUNTS[user],
            user_domain_id="default",
            project_domain_id="default",
            region_name=REGION,
            load_yaml_config=False,
            load_envvars=False,
        )

    def connection_to_system(self) -> openstack.connection.Connection:
        """The administrator of the whole system, who keeps limits."""
        return openstack.connect(
            auth_url=self.addresses.auth_url,
            username="admin",
            password=PASSWORD,
            user_domain_id="default",
            system_scope="all",
            region_name=REGION,
            load_yaml_config=False,
            load_envvars=False,
        )

    def write_client_files(self, directory: Path, policy: Path) -> None:
        """clouds.yaml for users. For our roles, how services are reached: services.conf; on hosts services-compute.conf."""
        own = configuration.credentials(self.addresses, "causeway")
        groups: dict[str, dict[str, object]] = {group: dict(own) for group in GROUPS}
        groups["keystone_authtoken"] = {**own, "www_authenticate_uri": self.addresses.auth_url}
        groups["service_user"]["send_service_user_token"] = "true"
        groups["oslo_policy"] = {"policy_file": policy}
        (directory / "services.conf").write_text(render(groups))
        account = configuration.credentials(self.addresses, "causeway-compute")
        of_hosts: dict[str, dict[str, object]] = {group: dict(account) for group in GROUPS}
        (directory / "services-compute.conf").write_text(render(of_hosts))
        clouds = {
            name: {
                "auth": {
                    "auth_url": self.addresses.auth_url,
                    "username": user,
                    "password": PASSWORD,
                    "project_name": "demo",
                    "user_domain_id": "default",
                    "project_domain_id": "default",
                },
                "region_name": REGION,
            }
            for name, user in {"causeway": "demo", "causeway-admin": "admin"}.items()
        }
        (directory / "clouds.yaml").write_text(yaml.safe_dump({"clouds": clouds}))

    # making it

    def _configure(self) -> None:
        directory, addresses, write = self.directory, self.addresses, self.machine.write
        for folder in ("images", "glance-staging", "glance-tasks", "neutron", "cinder", "nfs-mnt", "lock"):
            (directory / "state" / folder).mkdir(parents=True, exist_ok=True)
        self._write_keystone()
        write("etc/placement/placement.conf", render(configuration.placement(addresses)))
        write("etc/glance/glance-api.conf", render(self._glance()))
        write("etc/neutron/neutron.conf", render(self._neutron()))
        write("etc/neutron/ml2.ini", render(self._ml2()))
        write("etc/cinder/cinder.conf", render(self._cinder()))
        write("etc/cinder/rootwrap.conf", configuration.rootwrap(directory, VENV))
        for name in policies.POLICIES:
            write(f"etc/{name}/policy.yaml", policies.render(name))
        for name in self.storage:
            self.export(name).mkdir(exist_ok=True)
            write(f"etc/cinder/{name}_shares", f"127.0.0.1:{self.export(name)}\n")
        for name, script in configuration.COMMANDS.items():
            write(f"bin/{name}", script, executable=True)

    def _glance(self) -> Options:
        return configuration.glance(self.directory, VENV, self.addresses)

    def _cinder(self) -> Options:
        return configuration.cinder(self.directory, VENV, self.addresses, self.storage)

    def _neutron(self) -> Options:
        return configuration.neutron(self.directory, VENV, self.addresses)

    def _ml2(self) -> Options:
        return configuration.ml2()

    def _environment(self, name: str) -> dict[str, str]:  # noqa: ARG002
        """More variables for an API's process."""
        return {}

    def _write_keystone(self) -> None:
        options = configuration.keystone(self.directory, self.addresses, self._token_seconds)
        self.machine.write("etc/keystone/keystone.conf", render(options))

    def _make_keystone(self) -> None:
        run = self.machine.run
        keystone = (VENV / "bin/keystone-manage", "--config-file", "etc/keystone/keystone.conf")
        url = f"{self.addresses.auth_url}/"
        run([*keystone, "db_sync"])
        for keys in ("fernet_setup", "credential_setup"):
            run([*keystone, keys, "--keystone-user", "root", "--keystone-group", "root"])
        run(
            [
                *(*keystone, "bootstrap", "--bootstrap-password", PASSWORD, "--bootstrap-region-id", REGION),
                *(part for kind in ("public", "internal", "admin") for part in (f"--bootstrap-{kind}-url", url)),
            ]
        )

    def _make_databases(self) -> None:
        self._make_keystone()
        run, etc = self.machine.run, "--config-file"
        run([VENV / "bin/placement-manage", etc, "etc/placement/placement.conf", "db", "sync"])
        run([VENV / "bin/glance-manage", etc, "etc/glance/glance-api.conf", "db_sync"])
        neutron = (VENV / "bin/neutron-db-manage", etc, "etc/neutron/neutron.conf", etc, "etc/neutron/ml2.ini")
        if self.addresses.databases["neutron"].startswith("mysql"):
            run([*neutron, "upgrade", "heads"])
        else:
            # Neutron's migrations run on MySQL and MariaDB only.
            run([VENV / "bin/python", HERE / "neutron_schema.py", self.addresses.databases["neutron"]])
            run([*neutron, "stamp", "heads"])
        run([VENV / "bin/cinder-manage", etc, "etc/cinder/cinder.conf", "db", "sync"])

    def _fill_catalog(self) -> None:
        with self.connection(project="admin") as cloud:
            identity = cloud.identity
            roles = {role.name: role for role in identity.roles()}
            roles.setdefault("service", None)
            if roles["service"] is None:
                roles["service"] = identity.create_role(name="service")
            service = identity.find_project("service") or identity.create_project(name="service", domain_id="default")
            demo = identity.find_project("demo") or identity.create_project(name="demo", domain_id="default")
            endpoints = {kind: (name, self.addresses.url(name)) for name, kind in CATALOG.items()}
            endpoints["block-storage"] = ("cinder", f"{self.addresses.url('cinder')}/v3")
            # Under the names that DevStack gives them: clients such as Libcloud look for them.
            endpoints["volumev3"] = ("cinderv3", f"{self.addresses.url('cinder')}/v3/%(project_id)s")
            endpoints["compute"] = ("nova", self._compute_url)
            for kind, (name, url) in endpoints.items():
                found = identity.create_service(name=name, type=kind)
                for interface in ("public", "internal", "admin"):
                    identity.create_endpoint(service_id=found.id, interface=interface, url=url, region_id=REGION)
            for name in (*CATALOG, "causeway"):
                user = identity.create_user(
                    name=name, password=PASSWORD, domain_id="default", default_project_id=service.id
                )
                for role in ("admin", "service"):
                    identity.assign_project_role_to_user(service, user, roles[role])
            roles[policies.ROLE] = identity.create_role(name=policies.ROLE)
            user = identity.create_user(
                name="causeway-compute", password=PASSWORD, domain_id="default", default_project_id=service.id
            )
            for role in ("service", policies.ROLE):
                identity.assign_project_role_to_user(service, user, roles[role])
            user = identity.create_user(name="demo", password=PASSWORD, domain_id="default", default_project_id=demo.id)
            for role in ("member", "reader"):
                identity.assign_project_role_to_user(demo, user, roles[role])
            identity.assign_project_role_to_user(demo, identity.find_user("admin"), roles["admin"])

    def _await_workers(self) -> None:
        with self.connection(project="admin") as cloud:

            def volumes() -> bool:
                states = [service.state for service in cloud.block_storage.services()]
                # Beside the storage there is the scheduler.
                return len(states) > len(self.storage) and set(states) == {"up"}

            def pools() -> bool:
                try:
                    return len(list(cloud.block_storage.backend_pools())) >= len(self.storage)
                except openstack.exceptions.HttpException:
                    # Cinder's API asks the scheduler, which may not be there yet.
                    return False

            def ports() -> bool:
                return {agent.host for agent in cloud.network.agents() if agent.is_alive} >= set(self._hosts)

            self.machine.await_that(volumes, "cinder-volume")
            # The scheduler refuses every volume until it has heard of the storage.
            self.machine.await_that(pools, "cinder-scheduler")
            self.machine.await_that(ports, self.agents)


@contextmanager
def keystone_alone(directory: Path) -> Iterator[RealServices]:
    """Only Keystone, with an administrator and nothing else."""
    services = RealServices(
        directory,
        new_database=lambda name: f"sqlite:///{directory}/{name}.sqlite",
        queue="rabbit://",
        compute_url="http://127.0.0.1/compute/v2.1",
        hosts=(),
    )
    try:
        services.start_identity()
        yield services
    finally:
        services.stop()
