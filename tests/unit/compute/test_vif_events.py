"""Which messages of the network service are believed (`causeway.compute.host.vif_events`)."""

from __future__ import annotations

import pytest

from causeway import errors
from causeway.compute.host import vif_events
from causeway.compute.host.vif_events import PLUGGED, Watch
from causeway.model.events import ExternalEvent

PORT = "port"
LATE = ExternalEvent(PLUGGED, "server", tag=PORT)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vif_events, "LOOK_EVERY", 0.01)


def test_a_message_suffices_where_nothing_else_can_be_seen() -> None:
    watch = Watch("server")
    with watch.plugged([PORT], 60, fatal=True):
        watch.deliver(LATE)


def test_a_late_message_is_no_proof_where_the_port_shows_whether_it_is_plugged() -> None:
    watch, looks = Watch("server"), []

    def look() -> set[str]:
        looks.append(PORT)
        return {PORT} if len(looks) > 3 else set()

    with watch.plugged([PORT], 60, fatal=True, look=look, shown=[PORT]):
        watch.deliver(LATE)
    assert len(looks) == 4


def test_a_port_that_only_a_late_message_calls_plugged_fails_in_the_end() -> None:
    watch = Watch("server")
    with (
        pytest.raises(errors.VifPluggingFailed),
        watch.plugged([PORT], 0.05, fatal=True, look=lambda: set(), shown=[PORT]),
    ):
        watch.deliver(LATE)


def test_the_port_is_looked_at_before_any_message_comes() -> None:
    watch = Watch("server")
    with watch.plugged([PORT], 60, fatal=True, look=lambda: {PORT}, shown=[PORT]):
        pass


def test_a_message_suffices_while_the_network_service_does_not_answer() -> None:
    def look() -> set[str]:
        raise errors.ServiceFailed("it does not answer")

    watch = Watch("server")
    with watch.plugged([PORT], 60, fatal=True, look=look, shown=[PORT]):
        watch.deliver(LATE)


def test_a_host_that_stops_waits_no_longer() -> None:
    watch = Watch("server")
    with pytest.raises(errors.Interrupted), watch.plugged([PORT], 60, fatal=True, look=lambda: set(), shown=[PORT]):
        watch.close()
