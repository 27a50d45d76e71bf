"""Taking over a cloud that runs Nova.

`options` says of each option of a nova.conf what it means for Causeway; what it knows of single options is in `differing`.
Nothing here asks a service or a hypervisor.
"""

from __future__ import annotations

from causeway.adopt.options import Judged, Judgement, ToAdd, Verdict, judge

__all__ = ["Judged", "Judgement", "ToAdd", "Verdict", "judge"]
