"""Every rule, asked as every role, in and outside of the caller's project, and with every scope: the whole table."""

from __future__ import annotations

import pytest
from oslo_config import cfg
from oslo_policy import opts as policy_opts

from causeway import policy
from causeway.api.auth import context_of
from causeway.context import RequestContext
from causeway.policy import Enforcer

# As Keystone gives them: a role comes with those that it implies.
ROLES = {
    "admin": ("admin", "manager", "member", "reader"),
    "manager": ("manager", "member", "reader"),
    "member": ("member", "reader"),
    "reader": ("reader",),
    "service": ("service",),
    "none": (),
}
OWN = {"project_id": "project", "user_id": "user"}
OTHERS = {"project_id": "elsewhere", "user_id": "somebody"}
# default -> (who may on what is the project's own, who may on what is another's)
MAY: dict[str, tuple[str, str]] = {
    policy.ADMIN: ("admin", "admin"),
    policy.MANAGER: ("admin manager", "admin"),
    policy.MEMBER: ("admin manager member", "admin"),
    policy.READER: ("admin manager member reader", "admin"),
    policy.SERVICE: ("admin service", "admin service"),
    policy.OWN_KEYS: ("admin manager member reader service none", "admin"),
    policy.EVERYBODY: ("admin manager member reader service none",) * 2,
    policy.NOBODY: ("", ""),
}
# What more may with the defaults of before the roles.
FORMERLY = {
    policy.READER: "admin manager member reader service none",
    policy.MEMBER: "admin manager member reader service none",
}
RULES = {rule.name: rule.check_str for rule in policy.list_rules() if ":" in rule.name}


def enforcer(**options: bool) -> Enforcer:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    policy_opts.set_defaults(conf)
    if "enforce_scope" not in conf.oslo_policy:
        conf.register_opt(policy.ENFORCE_SCOPE, group="oslo_policy")
    for name, value in options.items():
        conf.set_override(name, value, group="oslo_policy")
    return Enforcer(conf)


def caller(role: str, **scope: str) -> RequestContext:
    context = RequestContext(user_id="user", roles=list(ROLES[role]), overwrite=False, **scope)
    context.is_admin = role == "admin"
    return context


def allowed(by: Enforcer, rule: str, target: dict[str, str], **scope: str) -> str:
    return " ".join(role for role in ROLES if by.allows(caller(role, **scope), rule, target))


@pytest.fixture(scope="module")
def as_they_are() -> Enforcer:
    return enforcer()


def test_every_default_is_in_the_table() -> None:
    assert set(RULES.values()) == set(MAY)


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_allows_its_roles(as_they_are: Enforcer, rule: str) -> None:
    own, others = MAY[RULES[rule]]
    assert allowed(as_they_are, rule, OWN, project_id="project") == own
    assert allowed(as_they_are, rule, OTHERS, project_id="project") == others
    # Not even administrators: their tokens are to be of a project.
    assert allowed(as_they_are, rule, OWN, system_scope="all") == ""
    assert allowed(as_they_are, rule, OWN, domain_id="default") == ""


def test_each_rule_allows_its_roles_without_scopes() -> None:
    lenient = enforcer(enforce_scope=False)
    for rule, default in RULES.items():
        own, others = MAY[default]
        assert allowed(lenient, rule, OWN, project_id="project") == own
        # A token of the whole system is of no project.
        assert allowed(lenient, rule, OTHERS, system_scope="all") == others
        assert allowed(lenient, rule, OTHERS, domain_id="default") == others


def test_each_rule_allows_its_former_roles_with_former_defaults() -> None:
    former = enforcer(enforce_new_defaults=False)
    for rule, default in RULES.items():
        own, others = MAY[default]
        young = rule.startswith(("os_compute_api:os-server-shares:", "causeway:"))
        expected = own if young else FORMERLY.get(default, own)
        assert allowed(former, rule, OWN, project_id="project") == expected, rule
        assert allowed(former, rule, OTHERS, project_id="project") == others, rule


def test_all_rules_are_of_project_scope() -> None:
    assert {tuple(rule.scope_types) for rule in policy.list_rules() if rule.name in RULES} == {("project",)}


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"HTTP_X_PROJECT_ID": "project"}, True),
        ({"HTTP_X_DOMAIN_ID": "default"}, False),
        ({"HTTP_OPENSTACK_SYSTEM_SCOPE": "all"}, False),
    ],
)
def test_the_scope_is_what_the_middleware_says(as_they_are: Enforcer, headers: dict[str, str], expected: bool) -> None:
    context = context_of({"HTTP_X_USER_ID": "user", "HTTP_X_ROLES": "admin", **headers}, as_they_are)
    assert bool(context.is_admin) is expected
    assert as_they_are.allows(context, "os_compute_api:os-services:list") is expected
