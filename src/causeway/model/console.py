"""Consoles of servers: what a token opens, and how a console ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ConsoleType(Enum):
    """What hypervisors of ours have; the value is what the API calls it."""

    NOVNC = "novnc"
    SERIAL = "serial"


@dataclass
class ConsoleAddress:
    """Where a guest's console listens just now. ``access_url_base``: what the URLs of such consoles begin with."""

    host: str
    port: int
    access_url_base: str


@dataclass
class ConsolePlace:
    """A console, and the host that has the guest."""

    address: ConsoleAddress
    cell_uuid: str
    compute_host: str


@dataclass
class ConsoleToken:
    """What a token opens: the console of a server while it is on that host. Of the token itself only a hash is kept."""

    token_hash: str
    console_type: ConsoleType
    instance_uuid: str
    cell_uuid: str
    compute_host: str
    host: str
    port: int
    access_url_base: str


class Ending(Enum):
    """Why a console is over, in the words that its user sees: at most 123 bytes, with a server's id for ``{}``."""

    UNKNOWN = "This token is wrong or has expired: ask for a new console"
    EXPIRED = "The time of this console is over: ask for a new one (POST /servers/{}/remote-consoles)"
    MOVED = "The server has moved: ask for a new console (POST /servers/{}/remote-consoles)"
    RESTARTED = "The guest was restarted: ask for a new console (POST /servers/{}/remote-consoles)"
    STOPPED = "The guest was stopped. When it runs: POST /servers/{}/remote-consoles"
    DELETED = "The server {} was deleted"
    SHUT_DOWN = "The proxy of consoles is shut down: ask for a new console"

    def sentence(self, instance_uuid: str = "") -> str:
        return self.value.format(instance_uuid)


@dataclass
class Standing:
    """How a console stands. ``ending``: None while it may stay open. ``is_busy``: something is being done to its server."""

    ending: Ending | None
    is_busy: bool = False
