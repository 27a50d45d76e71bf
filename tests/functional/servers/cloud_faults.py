"""What tests break in a cloud, and options that they set. All of it is undone after each test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import requests

from causeway.compute.handover import disk_fetch, handed_over
from causeway.context import admin_context
from causeway.devcloud import Fault
from causeway.embedded.cloud import EmbeddedCloud
from causeway.errors import GuestFailed
from causeway.rpc.compute import TOPIC
from causeway.rpc.transport import Outgoing, Verdict
from tests.functional.servers.cloud_reality import Reality
from tests.functional.servers.deployed_cloud import DeployedCloud
from tests.functional.servers.patience import PATIENCE, until


def _has_changed(before: dict[str, str], look: Callable[[], dict[str, str]]) -> bool:
    """Whether nothing is as it was before."""
    return not before.items() & look().items()


class LateOrder:
    """An order that is under way for so long that its sender does not wait for it any more."""

    def __init__(self, parts: EmbeddedCloud) -> None:
        self._parts = parts
        self.message: Outgoing | None = None

    def arrives(self) -> None:
        """Raises what the host answers."""
        assert self.message is not None, "it was not sent"
        cell_uuid = self._parts.cells.of_server(self.message.arguments["instance"].uuid)[0].uuid
        self._parts.around.transports.on_send = None
        computes = self._parts.conductor._services.computes(cell_uuid)
        computes._rpc.call(
            admin_context(), self.message.method, result=object, server=self.message.server, **self.message.arguments
        )


class Faults(Reality):
    """Rules of fault injection, lost messages, broken drivers, options."""

    def __init__(self, parts: EmbeddedCloud | DeployedCloud) -> None:
        super().__init__(parts)
        # What options were, before a test changed them.
        self._options: list[tuple[str, str | None, Any]] = []
        # Fault injection listens there, if the cloud has it.
        self._on_send = None if self.by_url else self.parts.around.transports.on_send
        self._patches = pytest.MonkeyPatch()

    def fail(self, action: str, path: str, **fields: Any) -> None:
        """Adds a rule to devcloud's fault injection."""
        fault = Fault(action, path, **fields)  # type: ignore[arg-type]  # whoever adds an unknown one gets an error
        if self.by_url:
            self.parts.faults.fail(fault)
        else:
            self.parts.devcloud.faults.add(fault)

    def lose(self, method: str | tuple[str, ...], verdict: Verdict = Verdict.LOSE_REQUEST, times: int = 1) -> None:
        """The next ``times`` calls of an RPC method (or of several) are lost, or their answers."""
        left = [verdict] * times
        methods = (method,) if isinstance(method, str) else method
        if self.by_url:
            self.parts.faults.lose(methods, verdict, times)
            return

        def on_send(message: Outgoing) -> Verdict:
            return left.pop() if message.method in methods and left else Verdict.DELIVER

        self.parts.around.transports.on_send = on_send

    def delay(self, *methods: str, sender_dies: bool = False) -> LateOrder:
        """The next order to a compute by one of these names is not answered, and arrives when the test says so."""
        late = LateOrder(self.parts)

        def on_send(message: Outgoing) -> Verdict:
            if message.topic == TOPIC and message.method in methods and late.message is None:
                late.message = message
                if sender_dies:
                    raise SystemExit
                return Verdict.LOSE_REQUEST
            return Verdict.DELIVER

        self.parts.around.transports.on_send = on_send
        return late

    @contextmanager
    def held(self, method: str) -> Iterator[threading.Event]:
        """Within the block the first call of an RPC method stays where it is; the event is set when it was made."""
        if self.by_url:
            with self.parts.faults.held(method) as made:
                yield made
            return
        reached, opened, left = threading.Event(), threading.Event(), [method]

        def on_send(message: Outgoing) -> Verdict:
            if message.method == method and left:
                left.pop()
                reached.set()
                assert opened.wait(PATIENCE)
            return Verdict.DELIVER

        transports = self.parts.around.transports
        before, transports.on_send = transports.on_send, on_send
        try:
            yield reached
        finally:
            opened.set()
            transports.on_send = before

    def break_driver(self, hosts: list[str], method: str, times: int = 1000) -> None:
        """The hypervisors of hosts fail in a method, so often."""
        if self.by_url:
            self.parts.faults.break_driver(hosts, method, times)
            return
        left = [None] * times
        for host in hosts:
            driver = self.driver(host)
            works = getattr(driver, method)

            def broken(*args: Any, works: Any = works, **kwargs: Any) -> Any:
                if left:
                    left.pop()
                    raise GuestFailed(f"The hypervisor broke in {method}.")
                return works(*args, **kwargs)

            self._patches.setattr(driver, method, broken)

    def damage_offers(self) -> None:
        """What hosts offer to others is not what they said that it is."""
        for compute in self.parts.computes.values():
            make = compute.host.offers.make

            def damaged(*args: Any, make: Any = make, **kwargs: Any) -> Any:
                manifest = make(*args, **kwargs)
                for offered in manifest.disks:
                    offered.sha256 = "0" * 64
                return manifest

            self._patches.setattr(compute.host.offers, "make", damaged)

    def without_rounds(self) -> None:
        """Disks travel when their guests are off: between cells through the image service."""
        self.option("warm", "never", "moves")

    def cut_offers(self) -> None:
        """What hosts offer can't be fetched any more, as if the network between them had been cut."""
        if self.by_url:
            self.parts.faults.cut_offers()
            return

        def cut(*_given: Any) -> None:
            raise requests.ConnectionError("cut")

        self._patches.setattr(disk_fetch, "_receive", cut)
        self._patches.setattr(handed_over, "PATIENCE", 0.0)

    def report(self, *hosts: str) -> None:
        """Hosts (none given: all) report now what they have and what runs on them; others report soon by themselves."""
        names = hosts or tuple(self.parts.computes)
        if not self.by_url:
            for name in names:
                self.parts.computes[name]._reporter.report_alive()
            return

        def reported() -> dict[str, str]:
            return {each.host: each.updated_at for each in self.admin.compute.services() if each.host in names}

        for _whole in range(2):
            # The report that is under way may have begun before.
            before = reported()
            until(partial(_has_changed, before, reported), bool, "hosts to report")

    def option(self, name: str, value: Any, group: str | None = None) -> None:
        if self.by_url:
            self.parts.needs(name, value, group)
            return
        conf = self.parts.conf
        self._options.append((name, group, (conf[group] if group else conf)[name]))
        conf.set_override(name, value, group=group)

    def without_patience(self) -> None:
        """What fails is undone at once and for good, also what passes."""
        self.option("patience", 0.0, "moves")
        self.option("patience_while_off", 0.0, "moves")
        self.option("whole_tries", 1, "moves")

    def heal(self) -> None:
        """Undoes every fault and option."""
        self._patches.undo()
        if self.by_url:
            self.parts.heal()
            return
        devcloud = self.parts.devcloud
        devcloud.faults.clear()
        devcloud.plug_delay, devcloud.unpluggable_hosts = 0.0, set()
        self.parts.around.transports.on_send = self._on_send
        while self._options:
            name, group, before = self._options.pop()
            self.parts.conf.set_override(name, before, group=group)
