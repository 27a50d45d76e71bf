"""Types are known to msgspec before threads can come to them at once."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from causeway.decoding import all_fields
from causeway.model.drains import DrainRequest, Limits, Scope

LEARN = """
import causeway.roles.conductor
from causeway import decoding
from causeway.moves.memory import MoveMemory
from causeway.scheduler.request import RequestSpec, SchedulingResult
from causeway.store.api.build_requests import BuildRequest

types = [BuildRequest, MoveMemory, RequestSpec, SchedulingResult]
assert not any("__msgspec_cache__" in vars(each) for each in types), "known without it"
decoding.prepare_decoders()
unknown = [each.__qualname__ for each in types if "__msgspec_cache__" not in vars(each)]
assert not unknown, unknown
"""


def test_what_is_decoded_is_learnt_at_once() -> None:
    """In a process of its own: here some may have been decoded already."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", LEARN], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("role", "least"), [("conductor", 100), ("web", 100), ("scheduler", 20), ("compute", 50)])
def test_a_process_of_a_role_learns_before_it_listens(role: str, least: int) -> None:
    prepared = f"import causeway.cli.{role}; from causeway import decoding; from causeway.conf import new_config\n"
    prepared += "from causeway.roles.surroundings import make_surroundings; from unittest import mock\n"
    prepared += "around = make_surroundings(new_config(), mock.Mock()); around.close()\n"
    prepared += f"assert len(decoding._prepared) > {least}, len(decoding._prepared)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", prepared], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_what_msgspec_made_of_a_part_is_shown_whole() -> None:
    part = {"name": "empty", "scope": {"cells": ["cell1"]}, "limits": {"total": 3}}
    made, whole = msgspec.convert(part, DrainRequest), DrainRequest("empty", Scope(["cell1"]), limits=Limits(3))
    assert made == whole
    assert all_fields(made) == all_fields(whole) == msgspec.to_builtins(whole)
