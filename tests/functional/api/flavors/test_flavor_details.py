"""Access to private flavors, and extra specs."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def private(admin: Any) -> None:
    flavor = {"name": "f", "id": "1", "ram": 1, "vcpus": 1, "disk": 0, "os-flavor-access:is_public": False}
    admin.post("/flavors", {"flavor": flavor})


@pytest.fixture
def public(admin: Any) -> None:
    admin.post("/flavors", {"flavor": {"name": "p", "id": "2", "ram": 1, "vcpus": 1, "disk": 0}})


@pytest.mark.usefixtures("private")
def test_a_project_is_given_access_and_loses_it(admin: Any, api: Any) -> None:
    assert admin.get("/flavors/1/os-flavor-access").json == {"flavor_access": []}
    added = admin.post("/flavors/1/action", {"addTenantAccess": {"tenant": "project"}})
    assert added.json == {"flavor_access": [{"flavor_id": "1", "tenant_id": "project"}]}
    assert admin.post("/flavors/1/action", {"addTenantAccess": {"tenant": "project"}}).status == 409
    assert api.get("/flavors/1").status == 200
    removed = admin.post("/flavors/1/action", {"removeTenantAccess": {"tenant": "project"}})
    assert removed.json == {"flavor_access": []}
    assert admin.post("/flavors/1/action", {"removeTenantAccess": {"tenant": "project"}}).status == 404
    assert api.get("/flavors/1").status == 404


@pytest.mark.usefixtures("public")
def test_public_flavors_have_no_access_list(admin: Any) -> None:
    assert admin.get("/flavors/2/os-flavor-access").status == 404
    assert admin.post("/flavors/2/action", {"addTenantAccess": {"tenant": "p"}}, version="2.7").status == 409
    assert admin.post("/flavors/2/action", {"addTenantAccess": {"tenant": "p"}}, version="2.6").status == 200


@pytest.mark.usefixtures("private")
def test_access_is_for_administrators(api: Any) -> None:
    assert api.get("/flavors/1/os-flavor-access").status == 403
    assert api.post("/flavors/1/action", {"addTenantAccess": {"tenant": "project"}}).status == 403


@pytest.mark.usefixtures("public")
def test_extra_specs_are_set_read_and_removed(admin: Any, api: Any) -> None:
    specs = {"extra_specs": {"hw:cpu_policy": "shared", "gen": "2"}}
    assert admin.post("/flavors/2/os-extra_specs", specs).json == specs
    assert api.get("/flavors/2/os-extra_specs").json == specs
    assert api.get("/flavors/2/os-extra_specs/gen").json == {"gen": "2"}
    assert admin.put("/flavors/2/os-extra_specs/gen", {"gen": "3"}).json == {"gen": "3"}
    assert admin.put("/flavors/2/os-extra_specs/gen", {"other": "3"}).status == 400
    assert api.get("/flavors/2").json["flavor"]["extra_specs"] == {"hw:cpu_policy": "shared", "gen": "3"}
    assert admin.delete("/flavors/2/os-extra_specs/gen").status == 200
    missing = api.get("/flavors/2/os-extra_specs/gen")
    assert (missing.status, missing.message) == (404, "Flavor 2 has no extra specs with key gen.")
    assert admin.delete("/flavors/2/os-extra_specs/gen").status == 404
    assert api.post("/flavors/2/os-extra_specs", specs).status == 403


@pytest.mark.usefixtures("public")
@pytest.mark.parametrize(
    "spec",
    [
        {"hw:cpu_policy": "sharrred"},
        {"hw:cpu_polic": "shared"},
        {"hw:numa_nodes": "0"},
        {"trait:HW_CPU_X86_AVX": "maybe"},
        {"resources:VCPU": "many"},
        {"quota:disk_read_bytes_sec": "fast"},
        {"os:secure_boot": "perhaps"},
    ],
)
def test_known_namespaces_are_checked_from_2_86(admin: Any, spec: dict[str, str]) -> None:
    assert admin.post("/flavors/2/os-extra_specs", {"extra_specs": spec}, version="2.85").status == 200
    refused = admin.post("/flavors/2/os-extra_specs", {"extra_specs": spec}, version="2.86")
    assert refused.status == 400
    assert refused.message.startswith("Validation failed;")


@pytest.mark.usefixtures("public")
@pytest.mark.parametrize(
    "spec",
    [
        {"anything": "goes"},
        {"aggregate_instance_extra_specs:gen": "2"},
        {"capabilities:cpu_info:vendor": "s== Intel"},
        {"trait_NET:CUSTOM_FAST": "required"},
        {"resources1:VCPU": "2"},
        {"hw:mem_page_size": "2MB"},
        {"hw:numa_cpus.0": "0,1-3,^2"},
    ],
)
def test_what_makes_sense_is_accepted(admin: Any, spec: dict[str, str]) -> None:
    assert admin.post("/flavors/2/os-extra_specs", {"extra_specs": spec}).status == 200


@pytest.mark.usefixtures("public")
@pytest.mark.parametrize("specs", [{}, {"a/b": "1"}, {"a": {"b": 1}}, {"a": "x" * 256}, {"": "1"}])
def test_bad_specs_are_refused(admin: Any, specs: dict[str, Any]) -> None:
    status = admin.post("/flavors/2/os-extra_specs", {"extra_specs": specs}).status
    assert status == (200 if specs == {} else 400)
