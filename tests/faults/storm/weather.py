"""What strikes the cloud: everything is killed and started again; now and then a host of it stays dead for a while."""

from __future__ import annotations

import threading

from tests.faults.clouds.site import ChildSite

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
            # The one with the most guests.
            self._die(max(self._site.hosts, key=lambda host: len(self._site.guests_on(host))))
        elif self.dead is not None and self._since >= BACK_AFTER:
            self._site.note_return(self.dead)
            self.dead, self._since = None, 0
        self._site.restart()
        self.crashes += 1
        self.is_up.set()

    def clear_up(self) -> None:
        """The last crash strikes work whose users wait for nothing any more. Every host is back."""
        self._hosts_die, self._since = False, BACK_AFTER
        self.strike()

    def _die(self, host: str) -> None:
        self.victims |= self._site.note_death(host)
        self.dead, self._since = host, 0
        self.deaths += 1
