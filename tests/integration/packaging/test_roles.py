"""Every role runs from wheels, in an environment of its own with nothing but the packages of its extra's list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.functional.processes.deployment import Deployment
from tests.functional.processes.own_process import Process
from tests.functional.processes.rabbit import rabbit, why_not
from tests.integration.packaging.installed import environment_with
from tests.ports import free_ports

pytestmark = [pytest.mark.timeout(300), pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]

# The extra from which a command runs. Hosts are simulated here: those are an extra, too.
EXTRAS = {
    "api": "api",
    "compute": "embedded",
    "conductor": "database",
    "console-proxy": "console-proxy",
    "devcloud": "embedded",
    "metadata": "api",
    "scheduler": "database",
}


class Installed(Deployment):
    """Each process runs the programs of its own environment."""

    programs: dict[str, Path]

    def restart(self, name: str, *, prefix: Sequence[str] = ()) -> Process:
        arguments = self._arguments[name]
        kind = type("Installed", (Process,), {"program": self.programs[EXTRAS[arguments[0]]] / "causeway"})
        self.processes[name] = kind(self.directory, name, *arguments, prefix=prefix)
        return self.processes[name]


@pytest.mark.long
def test_every_role_runs_from_the_packages_of_its_extra(built: Path, tmp_path: Path) -> None:
    programs = {}
    for extra in sorted(set(EXTRAS.values())):
        wheels = ("causeway", "causeway-embedded") if extra == "embedded" else ("causeway",)
        programs[extra] = environment_with(built, tmp_path / extra, *wheels, listed=extra)
    with rabbit(tmp_path / "rabbit") as queue:
        cloud = Installed(tmp_path, queue)
        cloud.programs = programs
        try:
            # Ready when all of them say so, hosts are mapped and the API answers.
            cloud.start()
            cloud.start_console_proxy(free_ports(1)[0])
            server = cloud.boot()
            assert server.status == "ACTIVE"
        finally:
            cloud.stop()
