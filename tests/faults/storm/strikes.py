"""What strikes a cloud of processes: each role and each part around is killed, frozen or stopped, and is back after a while.

One is struck at a time, or two at once (``pairs``); all others, users among them, continue. Services are killed while they work
on a request: Placement before a lock of a table that it writes in two transactions, devcloud before or behind a request that it
carries out.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import yaml

from causeway import errors
from tests.faults.clouds.processes_site import PLACEMENT, ProcessesSite
from tests.faults.clouds.site import until
from tests.faults.storm.weather import Weather
from tests.functional.processes.deployment import CONDUCTORS
from tests.integration.database_locks import locked

DEVCLOUD = "devcloud"
# Seconds for which something is down, or frozen: shorter and longer than leases and calls.
AWAY = (0.5, 8.0)
# A machine that is off is back after so many accidents.
BACK_AFTER = 3
# Seconds within which somebody has to ask for what is aimed at; else the service is killed as it is.
AIM = 4.0
# What Placement writes for a claim: a consumer in one transaction, allocations in another.
TABLES = ("allocations", "consumers", "resource_providers")
WRITES = ("POST", "PUT", "DELETE", "PATCH")


class Part(Protocol):
    """What can be stopped and started again, killed and frozen."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...
    def freeze(self) -> None: ...
    def thaw(self) -> None: ...


@dataclass(frozen=True)
class Strike:
    """``often``: its weight among all. ``act`` does it, and has restored what it broke when it returns. ``parts``: what it needs,
    so that another accident must not have it at the same time; nothing: it comes alone."""

    name: str
    often: float
    act: Callable[[ProcessesWeather], None]
    parts: frozenset[str] = frozenset()

    def goes_with(self, other: Strike) -> bool:
        return bool(self.parts and other.parts) and not self.parts & other.parts


class ProcessesWeather(Weather):
    """``struck``: what was done, and how often. A host that is dead is back after some more accidents."""

    #: what users who look into databases meet while these are down
    passing: tuple[type[Exception], ...] = (errors.CausewayError,)

    def __init__(
        self, site: ProcessesSite, dice: random.Random, *, only: str = "", pairs: bool = False, hosts_die: bool = True
    ) -> None:
        """``only``: accidents with this in their names. ``pairs``: two at once, where they can be."""
        super().__init__(hosts_die=hosts_die)
        self.cloud = site
        self.dice = dice
        self.struck: Counter[str] = Counter()
        self._all = [each for each in STRIKES if only in each.name]
        self._are_pairs = pairs
        # So that a storm has seen each before it sees one again.
        self._left: list[Strike] = []

    def strike(self) -> None:
        if not self._left:
            self._left = [each for each in self._all for _ in range(max(1, round(each.often)))]
            self.dice.shuffle(self._left)
        chosen = [self._left.pop()]
        if self._are_pairs:
            chosen += [each for each in reversed(self._left) if each.goes_with(chosen[0])][:1]
            for other in chosen[1:]:
                self._left.remove(other)
        with ThreadPoolExecutor(len(chosen), thread_name_prefix="accidents") as accidents:
            for done in [accidents.submit(each.act, self) for each in chosen]:
                done.result()
        self.struck[" + ".join(sorted(each.name for each in chosen))] += 1
        self.crashes += len(chosen)
        self._since += len(chosen)
        if self.dead is not None and self._since >= BACK_AFTER:
            self.restore()

    def clear_up(self) -> None:
        """The last accident strikes work whose users wait for nothing any more. Every host is back."""
        kill(CONDUCTORS[0])(self)
        if self.dead is not None:
            self.restore()
        self.cloud.await_api()

    def die(self) -> None:
        """The machine of the host with the most guests is off, and its operator says so."""
        if self.dead is not None or not self._hosts_die:
            return
        host = max(self.cloud.hosts, key=lambda name: len(self.cloud.guests_on(name)))
        self.victims |= {path.stem for path in self.cloud.guests_on(host)}
        self.cloud.kill_host(host)
        self.victims |= {path.stem for path in self.cloud.guests_on(host)}
        self.dead, self._since = host, 0
        self.deaths += 1

    def restore(self) -> None:
        assert self.dead is not None
        self.cloud.revive_host(self.dead)
        self.dead = None

    def wait(self) -> None:
        """While something is down."""
        time.sleep(self.dice.uniform(*AWAY))

    def ended(self) -> dict[str, str]:
        """Processes that were not struck, and have ended: what they said last."""
        return {
            name: process.log[-500:]
            for name, process in self.cloud.processes.items()
            if name != self.dead and process.has_ended
        }


def kill(name: str) -> Callable[[ProcessesWeather], None]:
    """kill -9, and a new process some seconds later, as systemd would."""

    def act(weather: ProcessesWeather) -> None:
        if name != weather.dead:
            weather.cloud.processes[name].kill()
            weather.wait()
            weather.cloud.start_again(name)

    return act


def freeze(name: str) -> Callable[[ProcessesWeather], None]:
    def act(weather: ProcessesWeather) -> None:
        if name != weather.dead:
            weather.cloud.processes[name].freeze()
            weather.wait()
            weather.cloud.processes[name].thaw()

    return act


def terminate(name: str) -> Callable[[ProcessesWeather], None]:
    """SIGTERM: it ends by itself, as at an upgrade."""

    def act(weather: ProcessesWeather) -> None:
        if name != weather.dead:
            weather.cloud.processes[name].terminate()
            weather.cloud.processes[name].wait_ended()
            weather.cloud.start_again(name)

    return act


def away(part: Callable[[ProcessesSite], Part], end: Callable[[Part], None]) -> Callable[[ProcessesWeather], None]:
    """``end``: how it ends, before it is started again."""

    def act(weather: ProcessesWeather) -> None:
        chosen = part(weather.cloud)
        end(chosen)
        weather.wait()
        chosen.start()

    return act


def frozen(part: Callable[[ProcessesSite], Part]) -> Callable[[ProcessesWeather], None]:
    def act(weather: ProcessesWeather) -> None:
        chosen = part(weather.cloud)
        chosen.freeze()
        weather.wait()
        chosen.thaw()

    return act


def kill_placement_in_request(weather: ProcessesWeather) -> None:
    """While it waits for a lock of a table, which it gets when nobody reads its answer any more."""
    with locked(weather.cloud.placement_database, weather.dice.choice(TABLES)) as lock:
        lock.is_awaited(AIM)
        weather.cloud.processes[PLACEMENT].kill()
    weather.wait()
    weather.cloud.start_again(PLACEMENT)


def kill_devcloud_in_request(weather: ProcessesWeather) -> None:
    """Before it carries out a request, or when it has and nobody knows yet: Identity, Image, Network or Block Storage."""
    faults = weather.cloud.state.devcloud / "devcloud-faults.yaml"
    hits = faults.with_name(f"{faults.name}.hits")
    hits.unlink(missing_ok=True)
    dice = weather.dice
    rule = {"action": dice.choice(("delay", "delay_reply")), "seconds": 60, "times": 1}
    wanted = {"method": dice.choice(WRITES), "service": dice.choice(("identity", "image", "network", "volume"))}
    faults.write_text(yaml.safe_dump([{**rule, **wanted}]))
    until(hits.exists, bool, AIM)
    weather.cloud.processes[DEVCLOUD].kill()
    faults.unlink()
    weather.wait()
    weather.cloud.start_again(DEVCLOUD)


def _roles() -> list[str]:
    hosts = [f"cell{cell}-host{host}" for cell in (1, 2) for host in (1, 2)]
    return ["api", "scheduler", *CONDUCTORS, "cell1-conductor", "cell2-conductor", *hosts]


def _queue(site: ProcessesSite) -> Part:
    return site.broker


def _databases(site: ProcessesSite) -> Part:
    return site.database


def _strike(name: str, often: float, act: Callable[[ProcessesWeather], None], *parts: str) -> Strike:
    return Strike(name, often, act, frozenset(parts))


QUEUE, DATABASES = "RabbitMQ", "databases"
STRIKES = (
    *(_strike(f"{name} killed", 1, kill(name), name) for name in _roles()),
    *(_strike(f"{name} frozen", 1, freeze(name), name) for name in _roles()),
    *(
        _strike(f"{name} restarted", 1, terminate(name), name)
        for name in ("api", "scheduler", *CONDUCTORS, "cell1-host1")
    ),
    _strike("RabbitMQ stopped", 1, away(_queue, lambda part: part.stop()), QUEUE),
    _strike("RabbitMQ killed", 2, away(_queue, lambda part: part.kill()), QUEUE),
    _strike("RabbitMQ frozen", 2, frozen(_queue), QUEUE),
    _strike("databases stopped", 1, away(_databases, lambda part: part.stop()), DATABASES),
    _strike("databases killed", 2, away(_databases, lambda part: part.kill()), DATABASES),
    _strike("databases frozen", 2, frozen(_databases), DATABASES),
    # A lock of the database is its aim.
    _strike("Placement killed in a request", 4, kill_placement_in_request, PLACEMENT, DATABASES),
    _strike("Placement frozen", 1, freeze(PLACEMENT), PLACEMENT),
    _strike("devcloud killed in a request", 4, kill_devcloud_in_request, DEVCLOUD),
    _strike("devcloud frozen", 1, freeze(DEVCLOUD), DEVCLOUD),
    # The API is asked for it.
    _strike("a host dies", 3, lambda weather: weather.die()),
)
