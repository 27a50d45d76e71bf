"""A cloud of many processes, found by the file that describes it, for the tests that know an embedded one (`moves_cloud`).

``pytest --cloud DIRECTORY/cloud.yaml tests/functional/servers`` runs the suite on it. The file says, with paths relative to it::

    clouds: clouds.yaml             # of openstacksdk: how users log in
    users: {demo: causeway, admin: causeway-admin}
    configuration: [services.conf, common.conf, databases.conf, conductor1.conf]   # of a conductor: what it can reach
    state: .                        # state_path of the hosts: where simulated guests and their disks can be looked at
    logs: .                         # HOST.log for each host
    hosts: {cell1-host1: cell1, ...}
    faults: faults.yaml             # [fault_injection] file, if it is enabled
    devcloud_faults: devcloud/devcloud-faults.yaml       # if devcloud is around it

`DeployedCloud` has what `EmbeddedCloud` has wherever both can: users, databases, the services around, the hosts' files. What only
the process of an embedded cloud has, it has not: a test that reaches for it is skipped and says for what.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import msgspec
import pytest
import yaml

from causeway import roles
from causeway.clients.placement import remote_placement
from causeway.conf import new_config
from causeway.devcloud import Fault
from causeway.embedded.settings import StateDir
from causeway.faults.points import every_point
from causeway.rpc.transport import SendHook, Transports, Verdict
from causeway.store.database import Database
from causeway.virt.simulated import SimulatedDriver
from causeway.virt.simulated.guest import Guest
from causeway.virt.simulated.host_files import HostFiles

DOUBLE_START = re.compile(r"Guest (\S+) is started on \S+ while another host runs it")
# What a network service does if it is configured for nothing else; devcloud's besides.
NETWORK = {"plug_delay": 0.0}
DEVCLOUD = {**NETWORK, "port_resource_request_groups": True}
SIDES = {Verdict.LOSE_REQUEST: "request", Verdict.LOSE_REPLY: "reply"}


def refuse(what: str) -> NoReturn:
    pytest.skip(f"by URL: {what}")


class DeployedCloud:
    """See the module."""

    #: whether there is one: everything takes longer then
    in_use = False

    def __init__(self, file: Path) -> None:
        DeployedCloud.in_use = True
        directory, described = file.resolve().parent, yaml.safe_load(file.read_text())
        self._directory = directory
        self._users: dict[str, str] = described["users"]
        self._clouds = yaml.safe_load((directory / described["clouds"]).read_text())["clouds"]
        self._logs = directory / described["logs"]
        self._faults = directory / described["faults"] if described.get("faults") else None
        self._devcloud_faults = directory / described["devcloud_faults"] if described.get("devcloud_faults") else None
        self._fault_rules: dict[str, Any] = {}
        self._devcloud_rules: list[dict[str, Any]] = []
        self.homes: dict[str, str] = described["hosts"]
        self.conf = new_config(config_files=[str(directory / name) for name in described["configuration"]])
        self.conf.set_override("enabled", False, group="fault_injection")
        self.around = roles.surroundings(self.conf, remote_placement(self.conf))
        self.around.transports = RemoteTransports(self.conf)
        self.api_database = Database(self.conf.api_database.connection, "the API")
        self.cells = roles.cells_of(self.conf, self.api_database)
        self.state = StateDir(directory / described["state"])
        self.computes = Names(self.homes)
        self.conductor = Inside("conductor")
        self.devcloud = Inside("devcloud", DEVCLOUD if self._devcloud_faults is not None else NETWORK)

    def __getattr__(self, name: str) -> NoReturn:
        refuse(f"reaches into the process of an embedded cloud ({name})")

    def close(self) -> None:
        self.heal()
        self.cells.close()
        self.api_database.close()
        self.around.close()

    def auth(self, user: str, project: str | None) -> dict[str, Any]:
        """openstacksdk's ``auth`` of a user in a project, its own if none is given."""
        if user not in self._users:
            refuse(f"there is no user {user}")
        known: dict[str, Any] = self._clouds[self._users[user]]["auth"]
        return {**known, "project_name": project or user}

    def region(self) -> str:
        return str(self._clouds[self._users["admin"]].get("region_name", "RegionOne"))

    def driver(self, host: str) -> SimulatedDriver:
        """The guests of a host, by its files."""
        return GuestFiles(host, self.state.host(host), self._logs / f"{host}.log")

    def check(self, wanted: Mapping[str, Any]) -> None:
        """Skips a module whose ``CLOUD`` this one is not."""
        cells = [list(self.homes.values()).count(cell) for cell in sorted(set(self.homes.values()))]
        if len(cells) != wanted.get("cells", 2) or set(cells) != {wanted.get("hosts_per_cell", 2)}:
            refuse(f"needs {wanted.get('cells', 2)} cells of {wanted.get('hosts_per_cell', 2)} hosts")
        if set(wanted) - {"cells", "hosts_per_cell", "overrides"}:
            refuse(f"needs a cloud with {', '.join(set(wanted) - {'cells', 'hosts_per_cell', 'overrides'})} of its own")
        for group, options in wanted.get("overrides", {}).items():
            for name, value in options.items():
                self.needs(name, value, None if group == "DEFAULT" else group)

    def needs(self, name: str, value: Any, group: str | None) -> None:
        """Skips a test that needs another value of an option than this cloud has."""
        found = (self.conf[group] if group else self.conf)[name]
        if str(found) != str(value) and found != value:
            refuse(f"needs [{group or 'DEFAULT'}] {name} = {value}, which is {found}")

    # faults

    def fail(self, fault: Fault) -> None:
        if self._devcloud_faults is None:
            refuse("a fault of devcloud's is wanted, and the real services are there")
        self._devcloud_rules.append({name: value for name, value in asdict(fault).items() if name[0] != "_"})
        _write(self._devcloud_faults, self._devcloud_rules)

    def lose(self, methods: tuple[str, ...], verdict: Verdict, times: int) -> None:
        points = [point for point in every_point() if point.startswith("rpc.") and point.endswith(SIDES[verdict])]
        points = [point for point in points if point.split(".")[2] in methods]
        if len(points) != 1:
            refuse(f"there is not one fault point for losing {' or '.join(methods)}")
        self._fault(points[0], error=True, times=times)

    def break_driver(self, hosts: list[str], method: str, times: int) -> None:
        point = f"driver.{method}.before"
        if point not in every_point():
            refuse(f"there is no fault point {point}")
        self._fault(point, error=True, times=times, host=hosts)

    def _fault(self, point: str, **rule: Any) -> None:
        if self._faults is None:
            refuse("fault injection is not enabled")
        self._fault_rules[point] = rule
        _write(self._faults, self._fault_rules)

    @property
    def has_devcloud(self) -> bool:
        """Whether devcloud is around, not the real services."""
        return self._devcloud_faults is not None

    def heal(self) -> None:
        """Undoes every fault."""
        self._fault_rules.clear()
        self._devcloud_rules.clear()
        for path in (self._faults, self._devcloud_faults):
            if path is not None:
                path.unlink(missing_ok=True)
        if self._faults is not None:
            self._faults.with_name(self._faults.name + ".hits").unlink(missing_ok=True)


def _write(path: Path, content: Any) -> None:
    """Whole: others read it at any time."""
    temporary = path.with_suffix(".new")
    temporary.write_text(yaml.safe_dump(content))
    temporary.replace(path)


class Inside:
    """A part that is in another process. Tests may set what is so anyhow."""

    def __init__(self, name: str, so_anyhow: Mapping[str, Any] = MappingProxyType({})) -> None:
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_so_anyhow", so_anyhow)

    def __getattr__(self, name: str) -> NoReturn:
        refuse(f"reaches into a process of the cloud ({self._name}.{name})")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._so_anyhow or self._so_anyhow[name] != value:
            refuse(f"sets {self._name}.{name} to {value}")


class Names(Mapping[str, Any]):
    """The hosts; their compute services are in other processes."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = tuple(names)

    def __getitem__(self, name: str) -> NoReturn:
        refuse("reaches into the process of a compute service")

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class RemoteTransports(Transports):
    """Calls of the tests' own, of an audit; what others send can't be seen."""

    @property
    def on_send(self) -> SendHook | None:
        return None

    @on_send.setter
    def on_send(self, hook: SendHook | None) -> None:
        if hook is not None:
            refuse("looks at, holds or loses calls in the process that makes them")


class _FilesOfAnotherProcess(HostFiles):
    @property
    def guests(self) -> dict[str, Guest]:
        found = {}
        for path in self._guests_dir.glob("*.json"):
            # It may go at any moment.
            with suppress(FileNotFoundError):
                found[path.stem] = msgspec.json.decode(path.read_bytes(), type=Guest)
        return found

    @guests.setter
    def guests(self, _none: dict[str, Guest]) -> None:
        pass


class GuestFiles(SimulatedDriver):
    """What a simulated hypervisor of another process keeps, read anew each time; nothing is done to its guests."""

    def __init__(self, host: str, state_dir: Path, log: Path) -> None:
        self._log = log
        super().__init__(host, state_dir, peers_dir=state_dir.parent)
        self.files = _FilesOfAnotherProcess(host, state_dir)

    @property
    def double_starts(self) -> list[str]:
        return DOUBLE_START.findall(self._log.read_text(errors="replace"))

    @double_starts.setter
    def double_starts(self, _none: list[str]) -> None:
        pass
