"""A host that changes its owner while processes die: what is done to it, and what must be so after each death."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from tests.functional.processes.own_process import Process, until
from tests.integration.adopt import nova, outside, owners
from tests.integration.adopt.adopted_cloud import AdoptedCloud
from tests.integration.adopt.nova_cloud import NovaCloud
from tests.integration.adopt.owners import CAUSEWAY, Owner

# Seconds. Whoever is held at a point continues then: nobody stands still for ever after a test that failed.
HELD = 300
# Seconds until a command notices that a host is silent.
SILENCE = 15


@dataclass(frozen=True)
class Canary:
    """The host whose processes die; its nova-compute is off. ``uuid``: its server that counts; ``guests``: as before."""

    cloud: NovaCloud
    adopted: AdoptedCloud
    host: str
    uuid: str
    guests: list[outside.Guest]

    def check(self, expected: Owner) -> None:
        owners.await_owner(self.cloud, self.adopted, self.host, expected)
        outside.check_same_runs(self.guests, outside.guests(self.cloud))

    @property
    def state(self) -> str:
        """How far the host is, as the records say."""
        (row,) = outside.rows(self.adopted.databases["api"], "adopted_hosts", host=self.host)
        return str(row["state"])

    @property
    def compute(self) -> Process:
        return self.adopted.processes[self.host]

    def restart(self, name: str) -> None:
        self.adopted.restart(name).wait_ready()

    def begin_take(self) -> Process:
        patience = self.adopted.directory / "patience.conf"
        patience.write_text(f"[DEFAULT]\nrpc_response_timeout = {SILENCE}\n")
        return self.adopted.begin("host", self.host, f"--config-file={patience}")

    def begin_hand_back(self) -> Process:
        return self.adopted.begin("hand-back", self.host, *self.adopted.of_nova)

    def take(self) -> None:
        said = self.adopted.adopt("host", self.host)
        assert (said.returncode, self.state) == (0, "taken"), said.stdout + said.stderr
        self.check(CAUSEWAY)

    def hand_back(self) -> None:
        said = self.adopted.adopt("hand-back", self.host, *self.adopted.of_nova)
        assert (said.returncode, self.state) == (0, "released"), said.stdout + said.stderr

    @contextmanager
    def held_at(self, point: str) -> Iterator[Callable[[], object]]:
        """Whoever comes to the point stands still until the block ends. Yields what waits for that."""
        self.adopted.fault(point, delay=HELD)
        try:
            yield partial(self.adopted.hit, point)
        finally:
            self.adopted.no_fault()

    def launch_nova_compute(self) -> None:
        """By mistake: it refuses to serve, and its process stays."""
        name = f"nova-compute-{self.host}"
        said_before = len(self.cloud.nova.log(name))
        self.cloud.nova.launch_compute(self.host)
        until(
            lambda: self.cloud.nova.log(name)[said_before:],
            lambda said: owners.REFUSED in said,
            f"{name} to say no",
            nova.PATIENCE,
        )
