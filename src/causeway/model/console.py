"""Consoles of servers: what a token opens, and how a console ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ConsoleType(Enum):
    """The types that our hypervisors have. The value is the API's name."""

    NOVNC = "novnc"
    SERIAL = "serial"


@dataclass
class ConsoleAddress:
    """Where a guest's console listens now. ``access_url_base``: the beginning of the URLs of such consoles."""

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
    """What a token opens: the console of a server while it is on that host. Only a hash of the token is stored."""

    token_hash: str
    console_type: ConsoleType
    instance_uuid: str
    cell_uuid: str
    compute_host: str
    host: str
    port: int
    access_url_base: str


class Ending(Enum):
    """Why a console ended, as its user sees it: at most 123 bytes, with a server's id for ``{}``."""

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
class ConsoleStanding:
    """The standing of a console. ``ending``: None while it may stay open. ``is_busy``: its server is being changed."""

    ending: Ending | None
    is_busy: bool = False
