"""Why a server does not fit on a host's hardware."""

from __future__ import annotations


class Misfit(Exception):
    """The host has too little of ``what``. ``needs`` and ``free`` are its amounts, if it can be counted.

    The message names no host, because users read it.
    """

    def __init__(self, what: str, needs: int | None = None, free: int | None = None) -> None:
        super().__init__(what if needs is None else f"{what} (needs {needs}, {free} free)")
        self.what = what
        self.needs = needs
        self.free = free
