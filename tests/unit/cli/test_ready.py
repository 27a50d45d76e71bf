"""What was loaded when a service is ready is no part of later collections of garbage."""

from __future__ import annotations

import gc

import pytest

from causeway.cli.ready import say_ready


def test_what_is_loaded_when_a_service_is_ready_is_not_collected_again(capsys: pytest.CaptureFixture[str]) -> None:
    loaded: list[object] = [[] for _ in range(1000)]
    try:
        say_ready("a service", ["a note"])
        assert not any(each is loaded for each in gc.get_objects())
        assert gc.get_freeze_count() > len(loaded)
        made_later: list[object] = []
        assert any(each is made_later for each in gc.get_objects())
    finally:
        gc.unfreeze()
    said = capsys.readouterr()
    assert (said.out, said.err) == ("ready: a service\n", "warning: a note\n")
