"""Why a server does not fit on a host's hardware."""

from __future__ import annotations


class Misfit(Exception):
    """``what`` there is too little of; ``needs`` and ``free`` if that can be counted. Names no host: users read it."""

    def __init__(self, what: str, needs: int | None = None, free: int | None = None) -> None:
        super().__init__(what if needs is None else f"{what} (needs {needs}, {free} free)")
        self.what = what
        self.needs = needs
        self.free = free
