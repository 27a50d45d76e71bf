"""``causeway drain watch`` where its output is no terminal."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.cli.drain import watch


def test_each_change_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    def shown(state: str, done: int, **more: Any) -> dict[str, Any]:
        servers = {"done": done, "pending": 2 - done}
        progress = {"servers": servers, "bytes_total": 818 << 20, "bytes_done": done * (409 << 20), **more}
        return {"name": "empty", "state": state, "note": None, "progress": progress, "pacing": None}

    hold = {"ends_at": "2026-11-30T04:43:00", "delayed_by": "hold", "meets_deadline": None}
    looks = iter([shown("running", 0), shown("running", 0), shown("running", 1, **hold), shown("done", 2)])
    assert watch.in_lines(lambda: next(looks), 0.0)["state"] == "done"
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("UTC  ")[2] for line in lines] == [
        "empty: running (2 pending). 0 bytes of 818.0 MiB. 0 of 2 servers",
        "empty: running (1 done, 1 pending). 409.0 MiB of 818.0 MiB. 1 of 2 servers; the last not before 30 Nov 04:43 UTC (hold)",
        "empty: done (2 done). 818.0 MiB of 818.0 MiB. 2 of 2 servers",
    ]
