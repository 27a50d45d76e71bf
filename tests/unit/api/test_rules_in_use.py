"""The API asks for rules that are registered, and for all of them: a rule that is not there is an error of the first request."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from causeway import policy
from tests.unit.api.rules_in_use import ROOT, Code, Unreadable, modules_of_the_api

REGISTERED = {rule.name for rule in policy.list_rules()}


@pytest.fixture(scope="module")
def used() -> dict[str, set[str]]:
    return Code.of(modules_of_the_api()).rules()


def test_every_rule_that_is_asked_for_is_registered(used: dict[str, set[str]]) -> None:
    assert {rule: places for rule, places in used.items() if rule not in REGISTERED} == {}


def test_every_registered_rule_is_asked_for_somewhere(used: dict[str, set[str]]) -> None:
    # Rules without a colon are for other rules: who is a reader, a member and so on.
    assert {rule for rule in REGISTERED if ":" in rule} - set(used) == set()


def test_only_requests_ask_for_rules() -> None:
    """What asks the enforcer itself would not be found here."""
    asking = {
        str(file.relative_to(ROOT))
        for file in ROOT.rglob("*.py")
        if re.search(r"enforcer\.(authorize|allows)\(", file.read_text())
    }
    assert asking == {"api/request.py"}


HANDLERS = """
from causeway.api.request import handler
from causeway.api.answers.parts import EMPTY
RULE = "things:"

@handler(answer=EMPTY)
def index(request):
    request.authorize(RULE + "index")
    return _shown(request, "one", detail=False)

@handler(answer=EMPTY)
def detail(request):
    rule, more = "two", 3
    return _shown(request, rule)

def _shown(request, what, *, detail=True):
    request.authorize(f"{RULE}show:{what}")
    if request.allows("all" if detail else RULE + "few"):
        return None
"""


def test_rules_are_found_through_parameters_of_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _rules_of(HANDLERS, tmp_path, monkeypatch) == {
        "things:index",
        "things:show:one",
        "things:show:two",
        "all",
        "things:few",
    }


@pytest.mark.parametrize("rule", ["request.body['rule']", "rule", "RULE % 1", "RULES[0]"])
def test_a_rule_that_can_t_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    text = f'RULE = "x"\nRULES = ["x"]\n\ndef index(request, rule):\n    request.authorize({rule})\n'
    with pytest.raises(Unreadable, match=":5: "):
        _rules_of(text, tmp_path, monkeypatch)


def _rules_of(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    (folder / "some_handlers.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "some_handlers", raising=False)
    try:
        return set(Code.of(["some_handlers"]).rules())
    finally:
        sys.modules.pop("some_handlers", None)
