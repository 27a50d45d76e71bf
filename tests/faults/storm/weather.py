"""What strikes the cloud: everything is killed and started again; now and then a host of it stays dead for a while."""

from __future__ import annotations

import threading

from tests.faults.clouds.site import ChildSite

# After so many crashes a host dies, and after so many more it is back.
DIES_AFTER, BACK_AFTER = 2, 2


class Weather:
    """What a storm asks of it. ``dead``: the host whose machine is off now. ``victims``: the servers whose guests were switched
    off with one. ``is_up``: whether users find anybody to ask."""

    #: what users who look past the API meet while something is down
    passing: tuple[type[Exception], ...] = ()

    def __init__(self, *, hosts_die: bool) -> None:
        self._hosts_die = hosts_die
        self._since = 0
        self.is_up = threading.Event()
        self.crashes = 0
        self.deaths = 0
        self.dead: str | None = None
        self.victims: set[str] = set()

    def strike(self) -> None:
        """Something breaks, and is whole again when this returns."""
        raise NotImplementedError

    def clear_up(self) -> None:
        """The last one strikes work whose users wait for nothing any more. Every host is back."""
        raise NotImplementedError

    def ended(self) -> dict[str, str]:
        """Processes that have ended by themselves: what they said last."""
        return {}


class Crashes(Weather):
    """Everything is one process, and is killed."""

    def __init__(self, site: ChildSite, *, hosts_die: bool = True) -> None:
        super().__init__(hosts_die=hosts_die)
        self._site = site

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
        self._hosts_die, self._since = False, BACK_AFTER
        self.strike()

    def _die(self, host: str) -> None:
        self.victims |= self._site.note_death(host)
        self.dead, self._since = host, 0
        self.deaths += 1
