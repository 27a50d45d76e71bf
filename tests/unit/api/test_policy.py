"""Who may do what, by default and by an operator's file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from oslo_config import cfg
from oslo_policy import opts as policy_opts

from causeway import errors, policy
from causeway.context import RequestContext
from causeway.embedded import settings
from causeway.policy import Enforcer


def caller(*roles: str, project: str = "project", **more: object) -> RequestContext:
    return RequestContext(user_id="user", project_id=project, roles=list(roles), overwrite=False, **more)


ADMIN, MANAGER, MEMBER, READER, SERVICE, NOBODY = (
    caller("admin"),
    caller("manager", "member", "reader"),
    caller("member", "reader"),
    caller("reader"),
    caller("service"),
    caller(),
)
OWN = {"project_id": "project", "user_id": "user"}
OTHERS = {"project_id": "elsewhere", "user_id": "somebody"}


@pytest.fixture(scope="module")
def enforcer() -> Enforcer:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    return Enforcer(conf)


def allowed(enforcer: Enforcer, rule: str, target: dict[str, str] = OWN) -> list[bool]:
    return [enforcer.allows(who, rule, target) for who in (ADMIN, MANAGER, MEMBER, READER, SERVICE, NOBODY)]


def test_the_roles_contain_one_another(enforcer: Enforcer) -> None:
    assert allowed(enforcer, "os_compute_api:os-aggregates:index") == [True, False, False, False, False, False]
    assert allowed(enforcer, "os_compute_api:os-migrate-server:migrate") == [True, True, False, False, False, False]
    assert allowed(enforcer, "os_compute_api:servers:resize") == [True, True, True, False, False, False]
    assert allowed(enforcer, "os_compute_api:servers:show") == [True, True, True, True, False, False]
    service = "os_compute_api:os-server-external-events:create"
    assert allowed(enforcer, service) == [True, False, False, False, True, False]
    assert allowed(enforcer, "os_compute_api:limits") == [True] * 6


def test_what_belongs_to_others_is_for_administrators(enforcer: Enforcer) -> None:
    assert allowed(enforcer, "os_compute_api:servers:show", OTHERS) == [True, False, False, False, False, False]
    assert enforcer.allows(NOBODY, "os_compute_api:os-keypairs:show", OWN)
    assert not enforcer.allows(MEMBER, "os_compute_api:os-keypairs:show", OTHERS)


def test_nobody_resizes_across_cells_by_default(enforcer: Enforcer) -> None:
    assert allowed(enforcer, policy.CROSS_CELL_RESIZE) == [False] * 6


def test_a_refusal_names_the_rule(enforcer: Enforcer) -> None:
    with pytest.raises(errors.Forbidden) as refused:
        enforcer.authorize(MEMBER, "os_compute_api:os-services:list")
    assert refused.value.message == "Policy doesn't allow os_compute_api:os-services:list to be performed."


def test_tokens_of_the_whole_system_are_not_for_projects_resources(enforcer: Enforcer) -> None:
    assert not enforcer.allows(caller("admin", system_scope="all"), "os_compute_api:servers:show", OWN)


def test_a_rule_that_does_not_exist_is_a_mistake(enforcer: Enforcer) -> None:
    with pytest.raises(KeyError):
        enforcer.allows(ADMIN, "os_compute_api:no-such-rule")


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ("rule:project_member_or_admin", [True, True, True, False, False, False]),
        ("role:reader and not role:member", [False, False, False, True, False, False]),
        ("role:MANAGER", [False, True, False, False, False, False]),
        ("project_id:%(project_id)s and role:reader", [False, True, True, True, False, False]),
        ("user_id:%(user_id)s", [True] * 6),
        ("user_id:somebody", [False] * 6),
        ("'user':%(user_id)s", [True] * 6),
        ("project_id:%(missing)s", [False] * 6),
        ("rule:no_such_rule", [False] * 6),
        ("@", [True] * 6),
    ],
)
def test_a_file_of_the_operators_overrides_rules(tmp_path: Path, check: str, expected: list[bool]) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(f'"{policy.CROSS_CELL_RESIZE}": "{check}"\n')
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    enforcer = Enforcer(conf)
    conf.set_override("policy_file", str(file), group="oslo_policy")
    enforcer = Enforcer(conf)
    assert allowed(enforcer, policy.CROSS_CELL_RESIZE) == expected


RENAMED = [
    ("compute:servers:migrate_live:cross_cell", policy.CROSS_CELL_LIVE),
    ("compute:servers:unshelve:cross_cell", policy.CROSS_CELL_UNSHELVE),
    ("causeway:leftovers:index", "causeway:cleanups:index"),
]


@pytest.mark.filterwarnings("ignore:Policy")
@pytest.mark.parametrize(("old", "new"), RENAMED)
def test_the_name_that_a_rule_had_before_counts_in_files(tmp_path: Path, old: str, new: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(f'"{old}": "role:reader"\n')
    conf = config_with(file)
    assert allowed(Enforcer(conf), new) == [False, True, True, True, False, False]
    assert policy.unknown_rules(conf) == []
    file.write_text(f'"{old}": "role:reader"\n"{new}": "role:manager"\n')
    assert allowed(Enforcer(config_with(file)), new) == [False, True, False, False, False, False]


def test_a_changed_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "RELOAD_INTERVAL", 0.0)
    file = tmp_path / "policy.yaml"
    file.write_text(f'"{policy.CROSS_CELL_RESIZE}": "role:member"\n')
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    Enforcer(conf)
    conf.set_override("policy_file", str(file), group="oslo_policy")
    enforcer = Enforcer(conf)
    assert enforcer.allows(MEMBER, policy.CROSS_CELL_RESIZE, OWN)
    file.write_text(f'"{policy.CROSS_CELL_RESIZE}": "!"\n')
    later = time.time() + 10
    os.utime(file, (later, later))
    assert not enforcer.allows(MEMBER, policy.CROSS_CELL_RESIZE, OWN)


BROKEN = [
    ("a: b: c\n", 1, "not YAML"),
    ('"x": "role:member"\n"y": "role:member and"\n', 2, "not understood: role:member and"),
    ('"x": "(role:member"\n', 1, "not understood"),
    # YAML for "nothing", which oslo.policy takes for "everybody".
    ('\n"x": !\n', 2, "quotes"),
    ('"x": {"y": "z"}\n', 1, "not text"),
    ("just a text\n", 1, "rules were expected"),
]


@pytest.mark.parametrize(("text", "line", "reason"), BROKEN)
def test_a_broken_file_is_reported_at_the_start(tmp_path: Path, text: str, line: int, reason: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    with pytest.raises(errors.Misconfigured) as reported:
        Enforcer(config_with(file))
    assert f"{file} is broken in line {line}: " in reported.value.message and reason in reported.value.message


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", '"x": ""\n', '"x": []\n', '"x": [["role:member"]]\n', '"x": "!"\n']
)
def test_files_of_every_form_are_read(tmp_path: Path, text: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    Enforcer(config_with(file))


RESIZE, SHOW = policy.CROSS_CELL_RESIZE, "os_compute_api:servers:show"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f'"{RESIZE}": "role:member"\n"{SHOW}": "role:reader"\n', []),
        # A rule of the operator's own.
        (f'"friends": "role:member"\n"{RESIZE}": "rule:friends or rule:context_is_admin"\n', []),
        ('"os_compute_api:servers:shwo": "@"\n', [f"os_compute_api:servers:shwo in FILE (is {SHOW} meant?)"]),
        ('"zzz": "@"\n', ["zzz in FILE"]),
        (f'"friends": "@"\n"{RESIZE}": "rule:freinds"\n',
         ["friends in FILE", "rule:freinds in FILE (is friends meant?)"]),
        (f'"{RESIZE}": [["rule:nobody_knows"]]\n', ["rule:nobody_knows in FILE"]),
    ],
)  # fmt: skip
def test_rules_that_nothing_asks_are_found(tmp_path: Path, text: str, found: list[str]) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    conf = config_with(file)
    Enforcer(conf)
    assert policy.unknown_rules(conf) == [each.replace("FILE", str(file)) for each in found]


@pytest.mark.parametrize(("text", "line", "reason"), BROKEN)
def test_a_file_that_breaks_leaves_the_rules_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, text: str, line: int, reason: str
) -> None:
    monkeypatch.setattr(policy, "RELOAD_INTERVAL", 0.0)
    file = tmp_path / "policy.yaml"
    file.write_text(f'"{policy.CROSS_CELL_RESIZE}": "role:member"\n')
    enforcer = Enforcer(config_with(file))
    changes = iter(range(10, 100, 10))

    def write(content: str) -> None:
        file.write_text(content)
        later = time.time() + next(changes)
        os.utime(file, (later, later))

    write(text)
    for _ in range(3):
        assert allowed(enforcer, policy.CROSS_CELL_RESIZE) == [False, True, True, False, False, False]
    (said,) = [
        record.getMessage() for record in caplog.records if "The rules that were read before" in record.getMessage()
    ]
    assert f"line {line}" in said and reason in said
    write(f'"{policy.CROSS_CELL_RESIZE}": "role:reader"\n')
    assert allowed(enforcer, policy.CROSS_CELL_RESIZE) == [False, True, True, True, False, False]


def config_with(file: Path) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    policy_opts.set_defaults(conf)
    conf.set_override("policy_file", str(file), group="oslo_policy")
    return conf


def test_every_rule_says_what_it_is_for() -> None:
    for rule in policy.list_rules():
        assert rule.description, rule.name
        if rule.name.startswith(("os_compute_api:", "compute:", "network:")):
            assert rule.operations, rule.name
            assert rule.scope_types == ["project"]


def test_the_sample_that_oslo_policy_makes_has_every_rule() -> None:
    program = Path(sys.executable).with_name("oslopolicy-sample-generator")
    made = subprocess.run(
        [sys.executable, "-W", "ignore", program, "--namespace", "causeway"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert set(re.findall(r'(?m)^#"([^"]+)":', made)) == {rule.name for rule in policy.list_rules()}


def test_the_policy_of_the_embedded_cloud_says_who_may_do_what_nobody_may_by_default() -> None:
    said = yaml.safe_load(settings.POLICY)
    assert set(said) == {rule.name for rule in policy.list_rules() if rule.check_str == policy.NOBODY}


def test_rules_hold_while_they_are_read_again(enforcer: Enforcer, monkeypatch: pytest.MonkeyPatch) -> None:
    rule, asked = "os_compute_api:servers:show", []
    read = enforcer._oslo.load_rules

    def read_slowly() -> None:
        # oslo.policy has no rules at this moment; another request is asked for now.
        enforcer._oslo.set_rules({}, use_conf=True)
        asked.append(enforcer.allows(caller("member", "reader"), rule, OWN))
        read(True)

    monkeypatch.setattr(enforcer._oslo, "load_rules", read_slowly)
    monkeypatch.setattr(enforcer, "_next_check", 0.0)
    assert enforcer.allows(caller("member", "reader"), rule, OWN)
    assert asked == [True]
