"""Turns policy rules into functions, which the enforcer calls for every request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oslo_policy import _checks, policy

Decision = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]


class Decisions:
    """Rules as plain functions of (target, credentials).

    oslo.policy inspects the signature of every check at every call, which takes about 20 microseconds, and a request to
    list servers makes dozens of calls. The checks that Causeway's rules consist of are evaluated here, with the same meaning;
    other kinds are passed on to oslo.policy.
    """

    def __init__(self, enforcer: policy.Enforcer) -> None:
        self._enforcer = enforcer
        # A copy: oslo.policy empties its own rules while it reads the files again.
        self._rules: dict[str, Any] = dict(enforcer.rules)
        self._made: dict[str, Decision] = {}

    def are_of(self, rules: Mapping[str, Any]) -> bool:
        """Whether the decisions were made from exactly these rules."""
        return self._rules.keys() == rules.keys() and all(self._rules[name] is check for name, check in rules.items())

    def of_rule(self, name: str) -> Decision:
        """Returns the rule as a function. Raises KeyError if there is no such rule."""
        found = self._made.get(name)
        if found is None:
            found = self._made[name] = self._make(self._rules[name])
        return found

    def _make(self, check: Any) -> Decision:
        if isinstance(check, _checks.AndCheck):
            parts = [self._make(part) for part in check.rules]
            return lambda target, creds: all(part(target, creds) for part in parts)
        if isinstance(check, _checks.OrCheck):
            parts = [self._make(part) for part in check.rules]
            return lambda target, creds: any(part(target, creds) for part in parts)
        if isinstance(check, _checks.RuleCheck):
            name = str(check.match)
            return lambda target, creds: name in self._rules and self.of_rule(name)(target, creds)
        if isinstance(check, _checks.RoleCheck) and "%" not in check.match:
            role = str(check.match).lower()
            return lambda _target, creds: any(role == held.lower() for held in creds["roles"])
        if type(check) is _checks.GenericCheck and check.kind in ("project_id", "user_id"):
            return _owner(check.kind, check.match)
        return lambda target, creds: bool(check(target, creds, self._enforcer))


def _owner(kind: str, match: str) -> Decision:
    def decide(target: Mapping[str, Any], creds: Mapping[str, Any]) -> bool:
        try:
            return match % target == str(creds[kind])
        except KeyError:
            return False

    return decide
