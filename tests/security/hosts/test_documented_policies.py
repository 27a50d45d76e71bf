"""The policies for the account of hosts in docs/deployment.md are those with which the real services were tried."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from tests.integration.real_services.policies import POLICIES

DEPLOYMENT = (Path(__file__).parents[3] / "docs/deployment.md").read_text()


def test_documented_policies_are_the_ones_of_the_integration_tests() -> None:
    for service, rules in POLICIES.items():
        found = re.search(rf"# {service.capitalize()}'s policy.yaml\n(.*?)\n(\n|```)", DEPLOYMENT, re.DOTALL)
        assert found is not None, service
        documented = yaml.safe_load(found[1])
        expected = {name: _flat(rule) for name, rule in rules.items()}
        assert {name: _flat(rule) for name, rule in documented.items()} == expected


def _flat(rule: str) -> str:
    """Without parentheses, which are written in two ways and mean the same."""
    return rule.replace("(", "").replace(")s", "#").replace(")", "").replace("#", ")s")
