"""Limits, quota sets, quota classes, and the check before something is made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from causeway import errors
from causeway.api.quotas import quota
from causeway.model.flavor import Flavor
from causeway.model.states import VmState
from causeway.store.api import build_requests, mappings
from causeway.store.cell import copies, instances
from tests.functional.api.servers.server_actions import make_build_request

DEFAULTS = {
    "instances": 10, "cores": 20, "ram": 51200, "metadata_items": 128, "key_pairs": 100, "server_groups": 10,
    "server_group_members": 10,
}  # fmt: skip
INJECTED = {"injected_files": 5, "injected_file_content_bytes": 10240, "injected_file_path_bytes": 255}
NETWORK = dict.fromkeys(("fixed_ips", "floating_ips", "security_groups", "security_group_rules"), -1)
BIG = Flavor("9", "big", vcpus=4, memory_mb=4096, root_gb=1)


def test_a_project_starts_with_the_defaults(api: Any) -> None:
    assert api.get("/os-quota-sets/project").json == {"quota_set": {"id": "project"} | DEFAULTS}
    assert api.get("/os-quota-sets/project/defaults").json == {"quota_set": {"id": "project"} | DEFAULTS}
    old = api.get("/os-quota-sets/project", version="2.56").json["quota_set"]
    assert old == {"id": "project"} | DEFAULTS | INJECTED
    oldest = api.get("/os-quota-sets/project", version="2.35").json["quota_set"]
    assert oldest == {"id": "project"} | DEFAULTS | INJECTED | NETWORK


def test_limits_are_set_and_unset(api: Any, admin: Any) -> None:
    answer = admin.put("/os-quota-sets/project", {"quota_set": {"cores": "40", "instances": -1}})
    assert answer.json == {"quota_set": DEFAULTS | {"cores": 40, "instances": -1}}
    assert api.get("/os-quota-sets/project").json["quota_set"]["cores"] == 40
    assert admin.delete("/os-quota-sets/project").status == 202
    assert api.get("/os-quota-sets/project").json["quota_set"]["cores"] == 20


def test_details_show_what_is_in_use_in_all_cells(api: Any, cloud: Any) -> None:
    copied = cloud.server("cell1", flavor=BIG)
    cloud.server("cell2", flavor=BIG)
    with cloud.cell("cell2").write() as connection:
        instances.insert(connection, replace(copied, hidden=True))
    detail = api.get("/os-quota-sets/project/detail").json["quota_set"]
    assert detail["cores"] == {"limit": 20, "in_use": 8, "reserved": 0}
    assert detail["instances"]["in_use"] == 2
    assert detail["ram"]["in_use"] == 8192


def test_a_limit_below_what_is_in_use_has_to_be_forced(admin: Any, cloud: Any) -> None:
    cloud.server(flavor=BIG)
    refused = admin.put("/os-quota-sets/project", {"quota_set": {"cores": 3}})
    assert refused.status == 400
    assert refused.message == "Quota limit 3 for cores must be greater than or equal to already used and reserved 4."
    assert admin.put("/os-quota-sets/project", {"quota_set": {"cores": 3, "force": True}}).status == 200


def test_users_have_limits_within_their_projects(admin: Any) -> None:
    assert admin.put("/os-quota-sets/project?user_id=user", {"quota_set": {"cores": 5}}).status == 200
    assert admin.get("/os-quota-sets/project?user_id=user").json["quota_set"]["cores"] == 5
    assert admin.get("/os-quota-sets/project").json["quota_set"]["cores"] == 20
    refused = admin.put("/os-quota-sets/project?user_id=user", {"quota_set": {"cores": 21}})
    assert (refused.status, refused.message) == (400, "Quota limit 21 for cores must be less than or equal to 20.")


@pytest.mark.parametrize(
    "limits", [{"cores": -2}, {"cores": "many"}, {"colour": 1}, {"floating_ips": 1}, {"cores": 1.5}]
)
def test_bad_limits_are_refused(admin: Any, limits: dict[str, Any]) -> None:
    assert admin.put("/os-quota-sets/project", {"quota_set": limits}).status == 400


def test_who_may_see_and_set_limits(api: Any) -> None:
    assert api.get("/os-quota-sets/elsewhere").status == 403
    assert api.put("/os-quota-sets/project", {"quota_set": {"cores": 1}}).status == 403
    assert api.get("/os-quota-sets/elsewhere/defaults").status == 200


def test_a_class_changes_the_defaults(admin: Any, api: Any) -> None:
    shown = admin.get("/os-quota-class-sets/default").json["quota_class_set"]
    assert shown == {"id": "default"} | DEFAULTS
    assert "server_groups" not in admin.get("/os-quota-class-sets/default", version="2.49").json["quota_class_set"]
    changed = admin.put("/os-quota-class-sets/default", {"quota_class_set": {"cores": 30}})
    assert changed.json == {"quota_class_set": DEFAULTS | {"cores": 30}}
    assert api.get("/os-quota-sets/project").json["quota_set"]["cores"] == 30
    old = admin.put("/os-quota-class-sets/default", {"quota_class_set": {"security_groups": 9}}, version="2.1")
    assert old.json["quota_class_set"]["security_groups"] == 9
    assert admin.get("/os-quota-class-sets/default", version="2.1").json["quota_class_set"]["security_groups"] == 9
    assert api.get("/os-quota-sets/project").status == api.get("/limits").status == 200
    assert api.get("/os-quota-class-sets/default").status == 403


KEPT = {
    "2.1": DEFAULTS | INJECTED | NETWORK,
    "2.35": DEFAULTS | INJECTED | NETWORK,
    "2.36": DEFAULTS | INJECTED,
    "2.56": DEFAULTS | INJECTED,
    "2.57": DEFAULTS,
    "2.104": DEFAULTS,
}


@pytest.mark.parametrize("version", KEPT)
def test_every_quota_that_a_version_takes_is_kept(admin: Any, api: Any, version: str) -> None:
    """Also those of the network, which limit nothing here."""
    wanted = {name: 200_000 + number for number, name in enumerate(KEPT[version])}
    answer = admin.put("/os-quota-sets/project", {"quota_set": wanted}, version=version)
    assert answer.json == {"quota_set": wanted}
    assert api.get("/os-quota-sets/project", version=version).json == {"quota_set": {"id": "project"} | wanted}
    detail = api.get("/os-quota-sets/project/detail", version=version).json["quota_set"]
    assert {name: value["limit"] for name, value in detail.items() if name != "id"} == wanted
    defaults = api.get("/os-quota-sets/project/defaults", version=version).json
    assert defaults == {"quota_set": {"id": "project"} | KEPT[version]}
    unknown = (NETWORK | INJECTED).keys() - wanted.keys()
    for name in unknown:
        assert admin.put("/os-quota-sets/project", {"quota_set": {name: 1}}, version=version).status == 400
    assert admin.delete("/os-quota-sets/project", version=version).status == 202
    assert api.get("/os-quota-sets/project", version=version).json == {"quota_set": {"id": "project"} | KEPT[version]}


@pytest.mark.parametrize(
    ("version", "names"),
    [
        ("2.1", (DEFAULTS | INJECTED | NETWORK).keys() - {"server_groups", "server_group_members"}),
        ("2.49", (DEFAULTS | INJECTED | NETWORK).keys() - {"server_groups", "server_group_members"}),
        ("2.50", (DEFAULTS | INJECTED).keys()),
        ("2.57", DEFAULTS.keys()),
    ],
)
def test_every_quota_of_a_class_is_kept_and_is_the_default(admin: Any, api: Any, version: str, names: set[str]) -> None:
    wanted = {name: 30 + number for number, name in enumerate(sorted(names))}
    answer = admin.put("/os-quota-class-sets/default", {"quota_class_set": wanted}, version=version)
    assert answer.json == {"quota_class_set": wanted}
    assert (
        admin.get("/os-quota-class-sets/default", version=version).json["quota_class_set"] == {"id": "default"} | wanted
    )
    for path in ("/os-quota-sets/project", "/os-quota-sets/project/defaults"):
        assert wanted.items() <= api.get(path, version="2.35").json["quota_set"].items()


def test_quotas_of_the_network_are_shown_wherever_limits_are(admin: Any, api: Any) -> None:
    wanted = {"floating_ips": 4, "security_groups": 5, "security_group_rules": 6, "fixed_ips": 7}
    assert admin.put("/os-quota-sets/project", {"quota_set": wanted}, version="2.35").status == 200
    absolute = api.get("/limits", version="2.35").json["limits"]["absolute"]
    assert absolute.items() >= {"maxTotalFloatingIps": 4, "maxSecurityGroups": 5, "maxSecurityGroupRules": 6}.items()
    assert api.get("/limits", version="2.36").json["limits"]["absolute"].keys().isdisjoint({"maxTotalFloatingIps"})


def test_a_users_quotas_of_addresses_are_the_projects(admin: Any) -> None:
    """As in Nova, which keeps none of these for users."""
    wanted = {"fixed_ips": 3, "floating_ips": 4, "security_groups": 5}
    assert admin.put("/os-quota-sets/project?user_id=user", {"quota_set": wanted}, version="2.1").status == 200
    of_user = admin.get("/os-quota-sets/project?user_id=user", version="2.1").json["quota_set"]
    of_project = admin.get("/os-quota-sets/project", version="2.1").json["quota_set"]
    assert of_user.items() >= wanted.items()
    assert of_project.items() >= {"fixed_ips": 3, "floating_ips": 4, "security_groups": -1}.items()


def test_limits_show_what_is_allowed_and_used(api: Any, admin: Any, cloud: Any) -> None:
    cloud.server(flavor=BIG)
    absolute = api.get("/limits").json["limits"]["absolute"]
    assert absolute == {
        "maxTotalInstances": 10,
        "maxTotalCores": 20,
        "maxTotalRAMSize": 51200,
        "maxTotalKeypairs": 100,
        "maxServerMeta": 128,
        "maxServerGroups": 10,
        "maxServerGroupMembers": 10,
        "totalInstancesUsed": 1,
        "totalCoresUsed": 4,
        "totalRAMUsed": 4096,
        "totalServerGroupsUsed": 0,
    }
    assert {"maxPersonality", "maxPersonalitySize"} < api.get("/limits", version="2.56").json["limits"][
        "absolute"
    ].keys()
    assert "maxImageMeta" in api.get("/limits", version="2.38").json["limits"]["absolute"]
    assert "maxTotalFloatingIps" in api.get("/limits", version="2.35").json["limits"]["absolute"]
    assert admin.get("/limits?tenant_id=project").json["limits"]["absolute"]["totalCoresUsed"] == 4
    assert api.get("/limits?tenant_id=elsewhere").status == 403
    assert api.get("/limits?colour=red").status == 400


def test_what_goes_over_a_limit_is_refused(cloud: Any) -> None:
    cloud.option("quota", "cores", 8)
    cloud.server("cell1", flavor=BIG)
    quota.check_deltas(cloud.services, "project", "user", instances=1, cores=4, ram=1)
    with pytest.raises(errors.OverQuota) as refused:
        quota.check_deltas(cloud.services, "project", "user", instances=1, cores=5)
    assert refused.value.message == "Quota exceeded for cores: Requested 5, but already used 4 of 8 cores"


def test_a_users_own_limits_count_too(cloud: Any, admin: Any) -> None:
    admin.put("/os-quota-sets/project?user_id=user", {"quota_set": {"instances": 1}})
    cloud.server(user_id="somebody-else")
    quota.check_deltas(cloud.services, "project", "user", instances=1)
    cloud.server()
    with pytest.raises(errors.OverQuota):
        quota.check_deltas(cloud.services, "project", "user", instances=1)


def test_what_shrinks_is_never_refused(cloud: Any) -> None:
    cloud.option("quota", "cores", 1)
    cloud.server(flavor=BIG)
    quota.check_deltas(cloud.services, "project", "user", cores=-2, ram=0)


def test_a_server_that_is_deleted_for_a_while_is_not_counted_and_has_to_fit_again(api: Any, cloud: Any) -> None:
    cloud.host("host1")
    server = cloud.server(flavor=BIG, host="host1", node="host1", vm_state=VmState.SOFT_DELETED)
    cloud.server(flavor=BIG)
    assert api.get("/limits").json["limits"]["absolute"]["totalCoresUsed"] == 4
    cloud.option("quota", "cores", 7)
    refused = api.post(f"/servers/{server.uuid}/action", {"restore": None})
    assert (refused.status, refused.message) == (
        403,
        "Quota exceeded for cores: Requested 4, but already used 4 of 7 cores",
    )
    assert cloud.services.conductor.calls == []
    cloud.option("quota", "cores", 8)
    assert api.post(f"/servers/{server.uuid}/action", {"restore": None}).status == 202


def test_without_quotas_nothing_is_limited(api: Any, admin: Any, cloud: Any) -> None:
    cloud.option("quota", "driver", "nova.quota.NoopQuotaDriver")
    cloud.option("quota", "key_pairs", 0)
    cloud.server(flavor=BIG)
    assert set(api.get("/os-quota-sets/project").json["quota_set"].values()) == {"project", -1}
    detail = api.get("/os-quota-sets/project/detail").json["quota_set"]
    assert detail["cores"] == {"limit": -1, "in_use": -1, "reserved": -1}
    assert admin.put("/os-quota-sets/project", {"quota_set": {"cores": 1}}).json["quota_set"]["cores"] == -1
    quota.check_deltas(cloud.services, "project", "user", instances=1, cores=10_000)
    quota.check_count(cloud.services, "project", "key_pairs", "too many", used=5, more=1)


@pytest.mark.parametrize("moment", ["before the cell was counted", "after the cell was counted"])
def test_a_server_that_gets_its_cell_while_it_is_counted_is_counted_once(
    cloud: Any, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    uuid, count = make_build_request(cloud), instances.usage

    def place() -> None:
        request = build_requests.find(cloud.services.api, uuid)
        if request is not None:
            with cloud.cell("cell1").write() as connection:
                instances.insert(connection, request.instance)
            with cloud.services.api.write() as connection:
                build_requests.delete_in(connection, uuid)
                mappings.set_cell_in(connection, uuid, cloud.cell_uuids["cell1"], expected=None)

    def counted(database: Any, *given: Any, **more: Any) -> Any:
        if database is not cloud.cell("cell1"):
            return count(database, *given, **more)
        if moment.startswith("before"):
            place()
        found = count(database, *given, **more)
        place()
        return found

    monkeypatch.setattr(instances, "usage", counted)
    assert quota.usage(cloud.services, "project") == quota.Usage(1, 1, 1)
    assert quota.usage(cloud.services, "project") == quota.Usage(1, 1, 1)


def test_only_cells_that_have_servers_of_the_project_are_asked(cloud: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    count, asked = instances.usage, list[str]()

    def counted(database: Any, *given: Any, **more: Any) -> Any:
        asked.append(database.name)
        return count(database, *given, **more)

    monkeypatch.setattr(instances, "usage", counted)
    assert quota.usage(cloud.services, "project") == quota.Usage()
    assert asked == []
    cloud.server("cell2")
    assert quota.usage(cloud.services, "project").instances == 1
    assert asked == ["cell2"]


def test_a_server_that_moves_to_a_cell_that_is_not_asked_is_counted_once(
    cloud: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, count = cloud.server("cell1"), instances.usage

    def counted(database: Any, *given: Any, **more: Any) -> Any:
        bundle = copies.read(cloud.cell("cell1"), server.uuid)
        copies.write(cloud.cell("cell2"), bundle)
        with cloud.services.api.write() as connection:
            cells = (cloud.cell_uuids[name] for name in ("cell2", "cell1"))
            mappings.set_cell_in(connection, server.uuid, next(cells), expected=next(cells))
        instances.set_hidden(cloud.cell("cell1"), server.uuid, hidden=True)
        return count(database, *given, **more)

    monkeypatch.setattr(instances, "usage", counted)
    assert quota.usage(cloud.services, "project").instances == 1
