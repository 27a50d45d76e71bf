"""Taking over a cloud that runs Nova, and handing it back (docs/adopting.md).

In the order of the day: `options` says what a nova.conf means here (what it knows of single options is in `differing`), and
`check` what can be taken over. `nova` reads Nova's databases, `records` says what each record is for Causeway, and `importing`
copies them. `host_config` prepares a host, `hosts` compares what is found there with the records, and takes it. `freezing` and
`finishing` are the last day's. `hand_back` is the way back.
"""

from __future__ import annotations

from causeway.adopt.options import Judged, Judgement, ToAdd, Verdict, judge

__all__ = ["Judged", "Judgement", "ToAdd", "Verdict", "judge"]
