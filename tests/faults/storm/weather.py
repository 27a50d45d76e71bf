"""What strikes the cloud: everything is killed and started again; now and then a host of it stays dead for a while."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import sqlalchemy as sa

from causeway.model.states import PowerState
from causeway.store.cell_tables import Services
from causeway.virt.simulated.guest import Guest

from ..site import ChildSite

# After so many crashes a host dies, and after so many more it is back.
DIES_AFTER, BACK_AFTER = 2, 2


class Weather:
    """``dead``: the host whose machine is off now. ``victims``: the servers whose guests were switched off with one."""

    def __init__(self, site: ChildSite, *, hosts_die: bool = True) -> None:
        self._site = site
        self._hosts_die = hosts_die
        self._since = 0
        self.is_up = threading.Event()
        self.crashes = 0
        self.deaths = 0
        self.dead: str | None = None
        self.victims: set[str] = set()

    def strike(self) -> None:
        """Everything is killed; a host may be dead, or back, when it is started again."""
        self.is_up.clear()
        self._site.kill()
        self._since += 1
        if self.dead is None and self._hosts_die and self._since >= DIES_AFTER:
            self._switch_off(max(self._site.hosts, key=lambda host: len(self._guests_on(host))))
        elif self.dead is not None and self._since >= BACK_AFTER:
            self._switch_on()
        self._site.restart()
        self.crashes += 1
        self.is_up.set()

    def clear_up(self) -> None:
        """The last crash strikes work whose users wait for nothing any more. Every host is back."""
        self._hosts_die, self._since = False, BACK_AFTER
        self.strike()

    # While nothing of the cloud runs: a machine that is off carries out no order, whatever was on its way to it.

    def _switch_off(self, host: str) -> None:
        for path in self._guests_on(host):
            guest = msgspec.json.decode(path.read_bytes(), type=Guest)
            guest.power_state = PowerState.SHUTDOWN
            path.write_bytes(msgspec.json.encode(guest))
            self.victims.add(guest.uuid)
        self._force_down(host, True)
        self.dead, self._since = host, 0
        self.deaths += 1

    def _guests_on(self, host: str) -> list[Path]:
        return sorted((self._site.state.host(host) / "guests").glob("*.json"))

    def _switch_on(self) -> None:
        assert self.dead is not None
        self._force_down(self.dead, False)
        self.dead, self._since = None, 0

    def _force_down(self, host: str, down: bool) -> None:
        """As its operator does, who finds nobody that could be asked just now."""
        table: sa.Table = Services.__table__  # type: ignore[assignment]
        with self._site.cell(host.partition("-")[0]).write() as connection:
            connection.execute(table.update().where(table.c.host == host).values(forced_down=down))
