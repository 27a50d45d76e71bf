"""Which errors a move waits for, and that they are the same ones on the other side of a call."""

from __future__ import annotations

import pytest

from causeway import errors

WAITED_FOR = {
    "cell_down",
    "claims_unknown",
    "database_failed",
    "disk_transfer_broken",
    "host_down",
    "guest_unclear",
    "held",
    "hosts_silent",
    "interrupted",
    "list_incomplete",
    "operation_under_way",
    "rpc_timeout",
    "service_down",
    "service_failed",
    "storage_unreachable",
}
TRIED_A_FEW_TIMES = {
    "internal_error",
    "query_failed",
    "no_such_method",
    "unexpected_failure",
    "guest_failed",
    "disk_in_use",
}


def codes() -> dict[str, type[errors.CausewayError]]:
    # The API has a few more for itself, which never cross a call.
    tree = errors._tree(errors.CausewayError)
    return {code: cls for code, cls in tree.items() if cls.__module__ == errors.__name__}


def test_what_is_not_named_here_is_a_refusal() -> None:
    passing = {code for code, cls in codes().items() if cls.passing}
    assert passing == WAITED_FOR | TRIED_A_FEW_TIMES
    assert {code for code, cls in codes().items() if cls.passing and cls.few_tries} == TRIED_A_FEW_TIMES


@pytest.mark.parametrize("code", sorted(WAITED_FOR | TRIED_A_FEW_TIMES))
def test_an_error_passes_on_both_sides_of_a_call(code: str) -> None:
    there = errors.from_wire({"code": code, "message": "It failed."})
    assert there.passing and type(there) is codes()[code]


def test_an_error_of_a_newer_service_is_tried_a_few_times() -> None:
    unknown = errors.from_wire({"code": "of_tomorrow", "message": "It failed."})
    assert unknown.passing and unknown.few_tries
