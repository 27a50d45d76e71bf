"""What there is, seen from where neither Nova nor Causeway is asked: hypervisors, processes, consoles, files of volumes, rows."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libvirt
import sqlalchemy as sa

from tests.functional.processes.own_process import until
from tests.gone_guests import unless_gone
from tests.integration.adopt.nova_cloud import NovaCloud

# Seconds until an emulated guest on a busy machine has said something more.
PATIENCE = 300.0

# Bytes of a volume: where what a test puts there begins, and how much it is.
FILLED_FROM, FILLED = 64 << 20, 1 << 20
_TICK = re.compile(r"TICK n=(\d+) lines=(\d+)\s")
_UNTOUCHED = ("host", "name", "domain_id", "pid", "started")


@dataclass(frozen=True)
class Guest:
    """A domain of a host's hypervisor. ``started``: of its process, in ticks of the kernel's clock; None: it is off."""

    uuid: str
    host: str
    name: str
    domain_id: int | None
    is_paused: bool
    pid: int | None
    started: int | None
    definition: str

    def is_same_run(self, other: Guest) -> bool:
        """Whether it is the same process of the same domain on the same host."""
        return all(getattr(self, each) == getattr(other, each) for each in _UNTOUCHED)


@dataclass(frozen=True)
class Tick:
    """``number`` counts since the guest's boot, ``lines`` since its disk was made."""

    number: int
    lines: int


def counting(seconds: int) -> str:
    """The user data of a server whose guest counts, in memory and on its disk, and says both on its console."""
    return f"""\
#!/bin/sh
(n=0; while sleep {seconds}; do
    n=$((n + 1))
    echo "$n" >> /disk/ticks
    sync
    echo "TICK n=$n lines=$(grep -c . /disk/ticks)" > /dev/console
done) &
"""


def guests(cloud: NovaCloud) -> list[Guest]:
    """All that the hosts have defined, in the order of hosts and names."""
    found = []
    for host in cloud.machines.endpoints:
        with _hypervisor(cloud, host) as connection:
            for domain in connection.listAllDomains():
                with unless_gone():
                    found.append(_guest(cloud, host, domain))
    return sorted(found, key=lambda guest: (guest.host, guest.name))


def guest_of(cloud: NovaCloud, uuid: str) -> Guest:
    """The only one of a server."""
    (found,) = [guest for guest in guests(cloud) if guest.uuid == uuid]
    return found


def console(cloud: NovaCloud, uuid: str) -> str:
    """What the guest wrote, read from its host's file. Empty: there is none, or nothing yet."""
    path = cloud.nova.home(guest_of(cloud, uuid).host) / "instances" / uuid / "console.log"
    return path.read_text(errors="replace") if path.exists() else ""


def ticks(cloud: NovaCloud, uuid: str) -> list[Tick]:
    """All of the guest's; a start of the guest begins a new file."""
    return ticks_in(console(cloud, uuid))


def ticks_in(text: str) -> list[Tick]:
    """All that a console has."""
    return [Tick(int(number), int(lines)) for number, lines in _TICK.findall(text)]


def await_tick(cloud: NovaCloud, uuid: str, after: int = 0) -> Tick:
    """The first one behind the number ``after``."""

    def look() -> Tick | None:
        return next((tick for tick in ticks(cloud, uuid) if tick.number > after), None)

    found = until(look, bool, f"the guest of {uuid} to count beyond {after}", PATIENCE)
    assert isinstance(found, Tick)
    return found


def await_lines(cloud: NovaCloud, uuid: str, after: int) -> Tick:
    """The first one with more lines than ``after``: the guest has the disk that it had, or one with the same content."""

    def look() -> Tick | None:
        return next((tick for tick in ticks(cloud, uuid) if tick.lines > after), None)

    found = until(look, bool, f"the disk of {uuid} to have more than {after} lines", PATIENCE)
    assert isinstance(found, Tick)
    return found


def check_ticks(cloud: NovaCloud, uuid: str) -> None:
    """The guest has left out no number, and its disk has a line more for each: it was neither started again nor set back."""
    found = ticks(cloud, uuid)
    numbers = [tick.number for tick in found]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), f"{uuid} has left out numbers: {numbers}"
    # Before it was looked at for the first time it may have been started anew, with the lines of then.
    assert len({tick.lines - tick.number for tick in found}) == 1, f"{uuid} is not what it was: {found}"


def check_same_runs(before: list[Guest], now: list[Guest]) -> None:
    """All are there, as the same processes, running or paused as before."""
    assert [guest.uuid for guest in now] == [guest.uuid for guest in before]
    for one, other in zip(now, before, strict=True):
        assert one.is_same_run(other), (one, other)
        assert one.is_paused == other.is_paused


def check_undisturbed(cloud: NovaCloud, before: list[Guest], counting: str) -> None:
    """All are as they were, and the one that counts still does."""
    check_same_runs(before, guests(cloud))
    await_tick(cloud, counting, ticks(cloud, counting)[-1].number)
    check_ticks(cloud, counting)


def volume_file(cloud: NovaCloud, volume: str) -> Path:
    """In the folder that the volume service exports."""
    return cloud.services.export(cloud.services.storage[0]) / f"volume-{volume}"


def fill(volume: Path) -> None:
    """Puts something into a volume, behind where guests leave their marks."""
    with volume.open("r+b") as content:
        content.seek(FILLED_FROM)
        content.write(random.randbytes(FILLED))


def digest(volume: Path) -> str:
    """Of what `fill` put there."""
    with volume.open("rb") as content:
        content.seek(FILLED_FROM)
        return hashlib.sha256(content.read(FILLED)).hexdigest()


def rows(url: str, table: str, **equal: object) -> list[dict[str, Any]]:
    """Of a table of any database, in the order of its primary key."""
    engine = sa.create_engine(url)
    try:
        with engine.connect() as connection:
            known = sa.Table(table, sa.MetaData(), autoload_with=connection)
            query = sa.select(known).order_by(*known.primary_key.columns)
            query = query.where(*(known.columns[name] == value for name, value in equal.items()))
            return [dict(row) for row in connection.execute(query).mappings()]
    finally:
        engine.dispose()


def checksums(url: str) -> dict[str, int]:
    """table -> MariaDB's checksum of all that is in it: shows whether anybody wrote."""
    engine = sa.create_engine(url)
    try:
        names = ", ".join(sa.inspect(engine).get_table_names())
        with engine.connect() as connection:
            found = connection.execute(sa.text(f"CHECKSUM TABLE {names}"))
            return {name.rpartition(".")[2]: number for name, number in found}
    finally:
        engine.dispose()


def _guest(cloud: NovaCloud, host: str, domain: Any) -> Guest:
    is_active = bool(domain.isActive())
    pid, started = _process(cloud, host, domain.name()) if is_active else (None, None)
    return Guest(
        uuid=domain.UUIDString(),
        host=host,
        name=domain.name(),
        domain_id=domain.ID() if is_active else None,
        is_paused=domain.state()[0] == libvirt.VIR_DOMAIN_PAUSED,
        pid=pid,
        started=started,
        definition=domain.XMLDesc(),
    )


def _process(cloud: NovaCloud, host: str, name: str) -> tuple[int | None, int | None]:
    """Of a guest, and since when it runs; None: it has just ended. libvirt keeps the number of its process beside its socket."""
    run = cloud.machines.endpoints[host].pid_file.with_name("run")
    try:
        pid = int((run / "qemu" / f"{name}.pid").read_text())
        # The name of the program may have blanks in it; what follows is the third field.
        return pid, int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except FileNotFoundError:
        return None, None


@contextmanager
def _hypervisor(cloud: NovaCloud, host: str) -> Iterator[Any]:
    with closing(libvirt.open(cloud.machines.endpoints[host].uri)) as connection:
        yield connection
