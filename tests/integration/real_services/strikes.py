"""What can be done to a part of a cloud, and how it comes back."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.functional.processes.deployment import CONDUCTORS, Deployment
from tests.functional.processes.network_cut import Cable
from tests.integration.real_services.sites import Part, Site

# Seconds: what systemd waits until it starts a process again; how long a part is unavailable; how long a host is cut off.
RESTART, AWAY, CUT = 3, 20, 60


@dataclass
class Scene:
    """A move that is held at a point."""

    site: Site
    server: Any
    source: str
    target: str
    #: which conductor has the move
    conductor: str = ""

    @property
    def cloud(self) -> Deployment:
        return self.site.cloud

    @property
    def other_conductor(self) -> str:
        return next(name for name in CONDUCTORS if name != self.conductor)

    def conductor_of(self, host: str) -> str:
        """The conductor of a host's cell."""
        cell = self.cloud.hosts[host]
        return next(name for name, of_cell in self.cloud.cell_conductors.items() if of_cell == cell)


class Strike:
    """``prepare`` comes before the move begins, ``clean`` when everything has settled."""

    def prepare(self, scene: Scene) -> None:
        """Nothing, unless a strike says otherwise."""

    def __call__(self, scene: Scene) -> None:
        """Does it, and restores what it broke."""
        raise NotImplementedError

    def clean(self, scene: Scene) -> None:
        """Nothing, unless a strike says otherwise."""


@dataclass(frozen=True)
class Kill(Strike):
    """kill -9, and a new process some seconds later, as systemd would."""

    which: Callable[[Scene], str]

    def __call__(self, scene: Scene) -> None:
        name = self.which(scene)
        scene.cloud.processes[name].kill()
        time.sleep(RESTART)
        scene.cloud.restart(name).wait_ready()


@dataclass(frozen=True)
class Away(Strike):
    """Stopped, and started again."""

    which: Callable[[Site], Part]
    seconds: float

    def __call__(self, scene: Scene) -> None:
        part = self.which(scene.site)
        part.stop()
        time.sleep(self.seconds)
        part.start()


@dataclass(frozen=True)
class ServiceDies(Strike):
    """The API of a service around is killed, and comes back. devcloud is one process: all of it is."""

    name: str
    seconds: float

    def __call__(self, scene: Scene) -> None:
        services = scene.site.services
        if services is None:
            scene.cloud.processes["devcloud"].kill()
            time.sleep(self.seconds)
            scene.cloud.restart("devcloud").wait_ready()
            return
        services.machine.kill(self.name)
        time.sleep(self.seconds)
        services.start_api(self.name)
        services.await_api(self.name)


@dataclass
class CutOff(Strike):
    """The compute of one side of the move gets a network of its own, which is cut."""

    which: Callable[[Scene], str]
    _cables: dict[str, Cable] = field(default_factory=dict)
    _made: int = 0

    def prepare(self, scene: Scene) -> None:
        name = self.which(scene)
        self._end(scene.cloud, name)
        # Its path must not be longer than a socket's may be.
        self._made += 1
        self._cables[name] = Cable(scene.cloud.directory / f"{name}-{self._made}", scene.site.ports())
        scene.cloud.restart(name, prefix=self._cables[name].prefix).wait_ready()

    def __call__(self, scene: Scene) -> None:
        cable = self._cables[self.which(scene)]
        cable.cut()
        time.sleep(CUT)
        cable.repair()

    def clean(self, scene: Scene) -> None:
        for name, cable in self._cables.items():
            cable.repair()
            self._end(scene.cloud, name)
            cable.remove()
            scene.cloud.restart(name).wait_ready()
        self._cables.clear()

    def _end(self, cloud: Deployment, name: str) -> None:
        cloud.processes[name].terminate()
        cloud.processes[name].wait_ended()
