"""A storm from its beginning to its end: users, crashes, then the judge."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from causeway import errors
from causeway.model.sagas import ENDED
from causeway.model.states import PowerState, VmState
from causeway.store.api import drains as store
from causeway.store.api import journal, mappings
from tests.faults.answers import call
from tests.faults.clouds.site import ChildSite, Site, until
from tests.faults.complaints import LEAKED, LOST, STUCK, Complaint
from tests.faults.moves import look
from tests.faults.storm import asking
from tests.faults.storm.asking import Scene
from tests.faults.storm.deeds import DEEDS, Deed
from tests.faults.storm.drains import Operator
from tests.faults.storm.judge import Verdict, judge
from tests.faults.storm.ledger import EXISTS, Account, Ledger, Seen
from tests.faults.storm.weather import Crashes, Weather
from tests.faults.world import World, see

USERS = 12
# Seconds for everything to settle when nobody asks for anything any more; and for what is done after an operation has ended.
PATIENCE, AFTERWARDS = 60.0, 10.0
# Seconds between two things that one user does: a cloud of two cores is not to be measured, but to be broken.
PAUSE = 0.05
# And between two that its operator does.
OPERATES = 0.5
# How often a user does nothing: what is seldom stays so for a server that is fit for little else.
LEAVES_IT = 2.0
LONGER = 8
T = TypeVar("T")
OVERLOOKED = "overlooked by the audit"


@dataclass
class Result:
    """``wrong``: server -> what is wrong with it, each with its kind; "" -> what is nobody's."""

    answers: Counter[str] = field(default_factory=Counter)
    # "recipe state" -> how many
    operations: Counter[str] = field(default_factory=Counter)
    # State -> drains that ended in it, their servers by what became of them; and what was asked of drains.
    drains: Counter[str] = field(default_factory=Counter)
    drained: Counter[str] = field(default_factory=Counter)
    operated: Counter[str] = field(default_factory=Counter)
    crashes: int = 0
    deaths: int = 0
    servers: int = 0
    seconds: float = 0.0
    wrong: dict[str, list[str]] = field(default_factory=dict)
    history: dict[str, list[str]] = field(default_factory=dict)

    def count(self, kind: str) -> int:
        return sum(any(each.startswith(kind) for each in found) for found in self.wrong.values())

    def __str__(self) -> str:
        reported = [
            f"{sum(count for name, count in self.answers.items() if name.endswith(kind))} {kind}"
            for kind in ("accepted", "refused", "lost")
        ]
        ended = [f"{count} {name}" for name, count in sorted(self.operations.items())]
        wrong = [f"{self.count(kind)} {kind}" for kind in (LOST, LEAKED, STUCK, OVERLOOKED)]
        return (
            f"{self.servers} servers, {self.crashes} crashes, {self.deaths} deaths of hosts in {self.seconds:.0f} s."
            f" Drains: {_counted(self.drains)}; their servers: {_counted(self.drained)}; asked: {_counted(self.operated)}."
            f" Answers: {', '.join(reported)}. Operations: {', '.join(ended)}. Wrong: {', '.join(wrong)}."
        )


def _counted(found: Counter[str]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(found.items())) or "none"


class Storm:
    """``every``: seconds between crashes, from and to. ``wanted``: deeds that it continues for, `LONGER` times if need be.

    ``weather``: what strikes the site; by default all of it crashes at once. ``patience``: seconds for everything to settle when
    nobody asks for anything any more.
    """

    def __init__(
        self,
        site: Site,
        *,
        weather: Weather | None = None,
        patience: float = PATIENCE,
        servers: int,
        seconds: float,
        every: tuple[float, float] = (3.0, 6.0),
        seed: int = 0,
        hosts_die: bool = True,
        drains: bool = True,
        wanted: Iterable[str] = (),
    ) -> None:
        self.site = site
        self.servers = servers
        self.seconds = seconds
        self.every = every
        self.wanted = frozenset(wanted)
        self.dice = random.Random(seed)
        self.result = Result()
        if weather is None:
            assert isinstance(site, ChildSite)
            weather = Crashes(site, hosts_die=hosts_die)
        self.weather = weather
        self.patience = patience
        self.operator = Operator(site, random.Random(seed)) if drains else None
        self.accounts: list[Account] = []
        self._is_over = threading.Event()
        self.done: Counter[str] = Counter()

    def run(self) -> Result:
        self._open_accounts()
        at_first = see(self.site)
        self.weather.is_up.set()
        began = time.monotonic()
        self._storm(began + self.seconds)
        self.weather.clear_up()
        if self.operator is not None:
            self.operator.finish()
        self._settle()
        self._switch_on()
        self._judge()
        self.result.seconds = time.monotonic() - began
        self._count()
        self._delete_all(at_first)
        return self.result

    def _open_accounts(self) -> None:
        storage, network = self.site.member.block_storage, self.site.member.network
        for number in range(self.servers):
            volumes = [storage.create_volume(size=1, name=f"volume {each} of {number}").id for each in (1, 2)]
            port = network.create_port(network_id=self.site.network_id, name=f"port of {number}").id
            self.accounts.append(Account(number, tuple(volumes), (port,)))
        for account in self.accounts:
            for volume in account.volumes:
                _wait(storage.get_volume, volume, lambda it: it.status == "available")
        with ThreadPoolExecutor(4, thread_name_prefix="users") as threads:
            list(threads.map(self._first_server, self.accounts))

    def _first_server(self, account: Account) -> None:
        nobody = Ledger("", on_volume=False, allowed={EXISTS: {False}})
        scene = Scene(self.site, account, nobody, Seen(False, False, None), random.Random(account.number))
        asking.create(scene, "create")

    def _storm(self, end: float) -> None:
        with ThreadPoolExecutor(USERS + 1, thread_name_prefix="users") as threads:
            working = [threads.submit(self._use, self.dice.random()) for _ in range(USERS)]
            if self.operator is not None:
                working.append(threads.submit(self._operate, self.operator))
            try:
                next_crash = time.monotonic() + self.dice.uniform(*self.every)
                while not self._is_enough(end) and not any(each.done() for each in working):
                    if time.monotonic() > next_crash:
                        self.weather.strike()
                        next_crash = time.monotonic() + self.dice.uniform(*self.every)
                    time.sleep(PAUSE)
            finally:
                self._is_over.set()
                self.weather.is_up.set()
            for each in working:
                each.result()

    def _is_enough(self, end: float) -> bool:
        now = time.monotonic()
        return now > end + LONGER * self.seconds or (now > end and all(self.done[name] for name in self.wanted))

    # users

    def _use(self, seed: float) -> None:
        dice = random.Random(seed)
        while not self._is_over.wait(PAUSE):
            self.weather.is_up.wait()
            with suppress(*self.weather.passing):
                self._do_something(dice.choice(self.accounts), dice)

    def _operate(self, operator: Operator) -> None:
        while not self._is_over.wait(OPERATES):
            self.weather.is_up.wait()
            with suppress(*self.weather.passing):
                operator.act()

    def _do_something(self, account: Account, dice: random.Random) -> None:
        """One deed that the account's server is fit for. What nobody has done yet comes first."""
        scene = self._scene(account, dice)
        fit = [deed for deed in DEEDS if deed.fits(scene)]
        fit = [deed for deed in fit if not self.done[deed.name]] or fit
        (deed,) = dice.choices([*fit, None], [*(deed.often for deed in fit), LEAVES_IT])
        if deed is None:
            return
        lock = account.lock(deed.concern)
        if not lock.acquire(blocking=False):
            return
        try:
            # Somebody else may have been quicker.
            scene = self._scene(account, dice)
            if deed.fits(scene):
                deed.ask(scene, deed.name)
                self.done[deed.name] += 1
        finally:
            lock.release()

    def _scene(self, account: Account, dice: random.Random) -> Scene:
        ledger = account.ledger
        if ledger.uuid is None and ledger.may_exist:
            self._find(ledger)
        return Scene(self.site, account, ledger, self._see(ledger), dice)

    def _find(self, ledger: Ledger) -> None:
        """Who got no answer to the request for a server looks for it by its name."""
        answer = call(self.site, "GET", f"/servers?all_tenants=1&name=^{ledger.name}$", by=self.site.admin)
        found = json.loads(answer.text)["servers"] if answer.is_accepted else []
        if found:
            ledger.uuid = found[0]["id"]

    def _see(self, ledger: Ledger) -> Seen:
        """Read past the API, which would be asked for little else."""
        if ledger.uuid is None:
            return Seen(is_building=False, is_busy=False, record=None)
        record = look.record(self.site, ledger.uuid)
        if record is None:
            return Seen(is_building=_has_no_cell(self.site, ledger.uuid), is_busy=True, record=None)
        is_busy = not look.is_settled(self.site, ledger.uuid) or record.vm_state is VmState.BUILDING
        states = self.site.guests.power_states(ledger.uuid)
        if ledger.uuid in self.weather.victims:
            ledger.host_died = True
        return Seen(
            is_building=False,
            is_busy=is_busy,
            record=record,
            power_is_off=list(states.values()) != [PowerState.RUNNING],
            is_on_dead_host=record.host is not None and record.host == self.weather.dead,
        )

    # the end

    def _settle(self) -> None:
        """Until nothing is on its way any more, or nothing has changed for too long."""
        left = list(self.accounts)
        end = time.monotonic() + self.patience
        while left and time.monotonic() < end:
            still = [account for account in left if not self._is_quiet(account)]
            if len(still) < len(left):
                left, end = still, time.monotonic() + self.patience
            time.sleep(0.2)

    def _is_quiet(self, account: Account) -> bool:
        seen = self._scene(account, self.dice).seen
        if seen.is_building or (seen.record is not None and seen.is_busy):
            return False
        return all(look.is_settled(self.site, ledger.uuid) for ledger in account.ledgers if ledger.uuid)

    def _switch_on(self) -> None:
        """Guests of a machine that was off are off: their users start them, after a confirm if one is waited for."""
        for account in self.accounts:
            for name in ("confirm", "reboot"):
                scene = self._scene(account, self.dice)
                record = scene.seen.record
                if record is None or not scene.seen.power_is_off or scene.seen.is_busy:
                    continue
                if scene.ledger.uuid not in self.weather.victims:
                    continue
                if name == "confirm" and record.vm_state is VmState.RESIZED:
                    self._deed("confirm").ask(scene, "confirm")
                elif name == "reboot" and record.vm_state is VmState.ACTIVE:
                    self._deed("reboot").ask(scene, "reboot")
                _wait(self._is_quiet, account, bool)

    @staticmethod
    def _deed(name: str) -> Deed:
        return next(deed for deed in DEEDS if deed.name == name)

    def _judge(self) -> None:
        if self.operator is not None:
            self._complain("", [f"{each.kind}: {each.text}" for each in self.operator.complaints])
        self._complain("", [f"{STUCK}: {name} ended by itself: {said}" for name, said in self.weather.ended().items()])
        verdict: Verdict = until(lambda: judge(self.site, self.accounts), lambda it: it.is_well, AFTERWARDS)
        report = look.report(self.site)
        audited = look.by_server(report)
        for uuid, found in audited.items():
            self._complain(uuid, found)
        reported = " ".join(each for found in audited.values() for each in found)
        for group in (verdict.facts, verdict.answers):
            for uuid, complaints in group.items():
                self._complain(uuid, [f"{each.kind}: {each.text}" for each in complaints])
        for uuid, complaints in verdict.facts.items():
            # Of what changes under its eyes an audit says nothing, but that it does.
            if uuid not in audited and uuid not in reported and uuid not in report.in_motion:
                self._complain(uuid, [f"{OVERLOOKED}: {each.text}" for each in complaints])

    def _complain(self, uuid: str, found: list[str], when: str = "") -> None:
        if found:
            self.result.wrong.setdefault(uuid, []).extend(f"{each}{when}" for each in found)
            for account in self.accounts:
                for ledger in account.ledgers:
                    if ledger.uuid == uuid:
                        self.result.history[uuid] = ledger.history

    def _count(self) -> None:
        if self.operator is not None:
            self.result.drains, self.result.operated = self.operator.ends, self.operator.asked
            for drain in store.search(self.site.api):
                states = store.progress(self.site.api, drain.id).servers
                self.result.drained.update({state.value: count for state, count in states.items()})
        self.result.crashes, self.result.deaths = self.weather.crashes, self.weather.deaths
        for account in self.accounts:
            self.result.servers += len(account.ledgers)
            for ledger in account.ledgers:
                self.result.answers.update(ledger.answers)
        for move in journal.all_operations(self.site.api):
            self.result.operations[f"{move.recipe} {move.state if move.state in ENDED else 'not ended'}"] += 1

    def _delete_all(self, at_first: World) -> None:
        """As their users find them; then nothing is left that was not there before, but what users made themselves."""
        ledgers = [ledger for account in self.accounts for ledger in account.ledgers if ledger.uuid is not None]
        for ledger in ledgers:
            if look.record(self.site, str(ledger.uuid)) is not None:
                answer = call(self.site, "DELETE", f"/servers/{ledger.uuid}")
                if not answer.is_accepted:
                    self._complain(
                        str(ledger.uuid), [f"{STUCK}: not to be deleted: {answer.status} {answer.text[:200]}"]
                    )
        for ledger in ledgers:
            if (
                _wait(lambda uuid: look.record(self.site, uuid), str(ledger.uuid), lambda record: record is None)
                is not None
            ):
                self._complain(str(ledger.uuid), [f"{STUCK}: it is not deleted"])
        known = {wanted.name for ledger in ledgers for wanted in ledger.images}

        def left() -> dict[str, list[str]]:
            world, found = see(self.site), dict[str, list[str]]()
            for kind, identity in world.new_since(at_first):
                record = getattr(world, f"{kind}s", {}).get(identity, {})
                if kind == "image" and record.get("name") in known:
                    continue
                owner = _owner(kind, identity, record)
                complaint = Complaint(
                    LEAKED, f"{kind} {identity} {record.get('name') or ''} {record.get('status') or ''}"
                )
                found.setdefault(owner, []).append(f"{complaint.kind}: {complaint.text}")
            return found

        for uuid, found in until(left, lambda found: not found, AFTERWARDS).items():
            self._complain(uuid, found, ", when all was deleted")
        for uuid, found in look.audit(self.site).items():
            self._complain(uuid, found, ", when all was deleted")


def _wait(look_at: Callable[[T], Any], what: T, good: Callable[[Any], bool]) -> Any:
    return until(lambda: look_at(what), good)


def _owner(kind: str, identity: str, record: dict[str, str]) -> str:
    if kind in ("guest", "disks"):
        return identity.split(" ")[0].removesuffix("_resize")
    named = (record.get(key) for key in ("device_id", "instance", "instance_uuid"))
    return next((uuid for uuid in named if uuid), "")


def _has_no_cell(site: Site, uuid: str) -> bool:
    """Whether the server is being built, and no cell has it yet."""
    try:
        mapping = mappings.get(site.api, uuid)
    except errors.ServerNotFound:
        return False
    return mapping.cell_uuid is None and not mapping.queued_for_delete
