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
    devcloud_switches: devcloud/devcloud-switches.yaml   # if devcloud is around it

`DeployedCloud` has what `EmbeddedCloud` has wherever both can: users, databases, the services around, the hosts' files. What only
the process of an embedded cloud has, it has not: a test that reaches for it is skipped and says for what.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import yaml

from causeway.clients.placement import remote_placement
from causeway.compute.host.claims import Claims
from causeway.conf import new_config
from causeway.embedded.settings import StateDir
from causeway.roles.cells import cells_of
from causeway.roles.surroundings import make_surroundings
from causeway.rpc.transport import SendHook, Transports
from causeway.store.database import Database
from causeway.virt.simulated import SimulatedDriver
from causeway.virt.simulated.hardware import from_options
from tests.functional.servers.fault_rules import FaultRules, NetworkSwitches, refuse
from tests.functional.servers.files_by_url import GuestFiles, claims_in

# What a network service does if it is configured for nothing else.
USUAL = {"plug_delay": 0.0}
# What a reason begins with if the test would run on a cloud of another shape.
NEEDS = "by URL: needs"
# The arguments of an embedded cloud that `DeployedCloud.check` understands.
ARGUMENTS = {"cells", "hosts_per_cell", "overrides", "config_files", "policy_file"}
# Options that say how soon something is done or abandoned, and the most seconds that a test can wait for by URL. What tests make
# short for embedded clouds may take so long here.
HOW_SOON = {
    "first_pause": 1,
    "lease": 6,
    "long_rpc_timeout": 20,
    "recovery_interval": 60,
    "report_interval": 2,
    "rpc_response_timeout": 20,
    "service_down_time": 60,
    "stuck_retry_interval": 30,
    "vif_plugging_timeout": 10,
}


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
        named = [described.get(name) for name in ("faults", "devcloud_faults")]
        self.faults = FaultRules(*(directory / name if name else None for name in named))
        self.homes: dict[str, str] = described["hosts"]
        self.configuration = [directory / name for name in described["configuration"]]
        self.conf = new_config(config_files=[str(file) for file in self.configuration])
        self.conf.set_override("enabled", False, group="fault_injection")
        self.around = make_surroundings(self.conf, remote_placement(self.conf))
        self.around.transports = RemoteTransports(self.conf)
        self.api_database = Database(self.conf.api_database.connection, "the API")
        self.cells = cells_of(self.conf, self.api_database)
        self.state = StateDir(directory / described["state"])
        self.computes = Names(self.homes)
        self.conductor = Inside("conductor")
        switches = described.get("devcloud_switches")
        self.devcloud = NetworkSwitches(directory / switches) if switches else Inside("devcloud", USUAL)

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
        return GuestFiles(host, self.state.host(host), self._logs / f"{host}.log", from_options(self.conf))

    def claims(self, host: str) -> Claims:
        """What is claimed on a host now, by its files."""
        return claims_in(self.state.host(host), self.driver(host), self.conf)

    def check(self, wanted: Mapping[str, Any]) -> None:
        """Skips a module whose ``CLOUD`` this one is not."""
        cells = [list(self.homes.values()).count(cell) for cell in sorted(set(self.homes.values()))]
        if len(cells) != wanted.get("cells", 2) or set(cells) != {wanted.get("hosts_per_cell", 2)}:
            refuse(f"needs {wanted.get('cells', 2)} cells of {wanted.get('hosts_per_cell', 2)} hosts")
        if unknown := set(wanted) - ARGUMENTS:
            refuse(f"needs a cloud with {', '.join(unknown)} of its own")
        for group, options in wanted.get("overrides", {}).items():
            for name, value in options.items():
                self.needs(name, value, None if group == "DEFAULT" else group)
        # By their text: libraries know these options only when they use them.
        mine = _written(*self.configuration)
        for group, values in _written(*map(Path, wanted.get("config_files", ()))).items():
            for name, text in values.items():
                if mine.get(group, {}).get(name) != text:
                    refuse(f"needs [{group}] {name} = {text}")
        if "policy_file" in wanted:
            policy = mine.get("oslo_policy", {}).get("policy_file")
            if policy is None or _rules(Path(policy)) != _rules(Path(wanted["policy_file"])):
                refuse("needs another policy")

    def needs(self, name: str, value: Any, group: str | None) -> None:
        """Skips a test that needs another value of an option than this cloud has."""
        found = (self.conf[group] if group else self.conf)[name]
        if (group, name) == ("fault_injection", "enabled"):
            # Off here, on in the cloud's processes.
            found = self.faults.is_enabled
        if name in HOW_SOON and value <= found <= HOW_SOON[name]:
            return
        if str(found) != str(value) and found != value:
            refuse(f"needs [{group or 'DEFAULT'}] {name} = {value}, which is {found}")

    @property
    def has_devcloud(self) -> bool:
        """Whether devcloud is around, not the real services."""
        return self.faults.has_devcloud

    def heal(self) -> None:
        """Undoes every fault."""
        self.faults.heal()
        if isinstance(self.devcloud, NetworkSwitches):
            self.devcloud.restore()


def _written(*files: Path) -> dict[str, dict[str, str]]:
    """group -> option -> what is written in files of configuration; the last one counts."""
    parser = ConfigParser(interpolation=None, strict=False, default_section="")
    parser.read(files)
    return {group: dict(parser[group]) for group in parser.sections()}


def _rules(policy: Path) -> dict[str, str]:
    return yaml.safe_load(policy.read_text()) or {}


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
