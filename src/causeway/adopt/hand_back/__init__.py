"""Writes into Nova's databases what has changed since its hosts were taken, so that Nova continues with its servers.

It compares states: what Nova's records say of a server, and what Causeway's say. So it may be repeated, and a run that died is
just run again. Nothing is deleted that Nova's own services would not mark as deleted.
"""

from __future__ import annotations

from causeway.adopt.hand_back.cloud import HandBack, HandedBack
from causeway.adopt.hand_back.unsettled import Unsettled

__all__ = ["HandBack", "HandedBack", "Unsettled"]
