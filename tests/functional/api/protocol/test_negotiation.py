"""Versions, version documents, request ids and what is wrong with a request before any resource is asked."""

from __future__ import annotations

from typing import Any

import pytest


def test_without_a_header_it_is_2_1(api: Any) -> None:
    answer = api.get("/flavors", headers={"OpenStack-API-Version": ""})
    assert answer.status == 200
    assert answer.headers["openstack-api-version"] == "compute 2.1"
    assert answer.headers["x-openstack-nova-api-version"] == "2.1"
    assert answer.headers["vary"] == "OpenStack-API-Version, X-OpenStack-Nova-API-Version"


def test_the_standard_header_comes_first_and_the_old_one_works(api: Any) -> None:
    old = {"OpenStack-API-Version": "", "X-OpenStack-Nova-API-Version": "2.55"}
    assert api.get("/flavors", headers=old).headers["openstack-api-version"] == "compute 2.55"
    both = {"OpenStack-API-Version": "compute 2.61", "X-OpenStack-Nova-API-Version": "2.55"}
    assert api.get("/flavors", headers=both).headers["openstack-api-version"] == "compute 2.61"
    latest = {"OpenStack-API-Version": "compute latest"}
    assert api.get("/flavors", headers=latest).headers["openstack-api-version"] == "compute 2.104"


@pytest.mark.parametrize("text", ["2", "2.x", "02.1", "2.01", "two", "0.1", "2.1.1", "-2.1"])
def test_what_is_no_version_is_400_without_version_headers(api: Any, text: str) -> None:
    answer = api.get("/flavors", version=text)
    assert (answer.status, answer.fault) == (400, "badRequest")
    assert answer.message == f"API Version String {text} is of invalid format. Must be of format MajorNum.MinorNum."
    assert "openstack-api-version" not in answer.headers


@pytest.mark.parametrize("text", ["2.0", "2.105", "3.1", "1.1"])
def test_versions_out_of_range_are_406(api: Any, text: str) -> None:
    answer = api.get("/flavors", version=text)
    assert (answer.status, answer.fault) == (406, "computeFault")
    assert answer.message == f"Version {text} is not supported by the API. Minimum is 2.1 and maximum is 2.104."
    assert answer.headers["openstack-api-version"] == f"compute {text}"


def test_errors_carry_the_version_and_request_ids(api: Any) -> None:
    answer = api.get("/flavors/none", version="2.60")
    assert answer.status == 404
    assert answer.headers["openstack-api-version"] == "compute 2.60"
    assert answer.headers["x-compute-request-id"] == answer.headers["x-openstack-request-id"]
    assert answer.headers["x-compute-request-id"].startswith("req-")


def test_unknown_paths_and_methods_are_not_found(api: Any) -> None:
    missing = api.get("/os-nothing/of/the/kind")
    assert (missing.status, missing.fault) == (404, "itemNotFound")
    wrong = api.call("PATCH", "/flavors", {})
    assert (wrong.status, wrong.fault) == (404, "itemNotFound")
    assert api.get("/os-cells").status == 410
    # As in Nova a slash too many is another path.
    assert api.get("/flavors/").status == 404


def test_the_project_in_the_url_must_be_the_callers(api: Any) -> None:
    assert api.get("/project/flavors").status == 200
    other = api.get("/elsewhere/flavors")
    assert other.status == 400
    assert "doesn't match Context's project_id" in other.message


def test_links_name_the_project_if_the_url_does(api: Any, admin: Any) -> None:
    admin.post("/flavors", {"flavor": {"name": "f", "id": "1", "ram": 1, "vcpus": 1, "disk": 0}})
    links = api.get("/project/flavors/1").json["flavor"]["links"]
    assert [link["href"] for link in links] == [
        "http://falconframework.org/v2.1/project/flavors/1",
        "http://falconframework.org/project/flavors/1",
    ]


def test_links_begin_with_the_prefix_of_a_proxy(api: Any, admin: Any, cloud: Any) -> None:
    cloud.option("api", "compute_link_prefix", "https://cloud.example/compute/")
    created = admin.post("/flavors", {"flavor": {"name": "f", "id": "1", "ram": 1, "vcpus": 1, "disk": 0}})
    assert created.json["flavor"]["links"][0]["href"] == "https://cloud.example/compute/v2.1/flavors/1"
    assert api.get("/", root="", headers={"X-Auth-Token": ""}).json["versions"][1]["links"][0]["href"] == (
        "https://cloud.example/compute/v2.1/"
    )


def test_without_a_token_it_is_401(api: Any) -> None:
    answer = api.get("/flavors", headers={"X-Auth-Token": ""})
    assert (answer.status, answer.fault) == (401, "unauthorized")


def test_identity_headers_of_the_caller_are_not_believed(api: Any) -> None:
    forged = {"X-Roles": "admin", "X-User-Id": "admin", "X-Identity-Status": "Confirmed"}
    assert api.get("/os-aggregates", headers=forged).status == 403
    assert api.get("/os-aggregates", headers=forged | {"X-Auth-Token": ""}).status == 401


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        ("{", "application/json", 400),
        ("[]", "application/json", 400),
        ("", "application/json", 400),
        ('{"flavor": 1}', "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        ("flavor", "text/plain", 415),
        ("<flavor/>", "application/xml", 415),
        ('{"x": "' + "x" * 200_000 + '"}', "application/json", 413),
        ("[" * 50_000, "application/json", 400),
    ],
)
def test_bodies_that_are_no_json_are_refused(admin: Any, body: str | bytes, content_type: str, status: int) -> None:
    answer = admin.post("/flavors", body=body, headers={"Content-Type": content_type})
    assert answer.status == status
    assert answer.message


def test_unknown_query_parameters_of_what_is_read_are_refused_from_2_102(admin: Any) -> None:
    assert admin.get("/os-aggregates/1?colour=red", version="2.102").status == 400
    assert admin.get("/os-aggregates/1?colour=red", version="2.101").status == 404
    assert admin.delete("/os-aggregates/1?colour=red", version="2.102").status == 404


def test_nul_is_nowhere(admin: Any) -> None:
    assert admin.get("/flavors/%00").status == 404
    assert admin.get("/flavors?name=%00").status == 400
    assert admin.post("/os-aggregates", {"aggregate": {"name": "a\x00"}}).status == 400


def test_actions_are_named_by_the_bodys_only_key(admin: Any) -> None:
    unknown = admin.post("/os-aggregates/1/action", {"dance": None})
    assert (unknown.status, unknown.message) == (400, "There is no such action: dance")
    assert admin.post("/os-aggregates/1/action", {"add_host": {}, "remove_host": {}}).status == 400
    assert admin.post("/os-aggregates/1/action", {}).status == 400


def test_the_legacy_endpoint_is_not_strict_and_knows_no_versions(admin: Any) -> None:
    flavor = {"name": "f", "id": "1", "ram": 1, "vcpus": 1, "disk": 0, "colour": "red"}
    answer = admin.post("/flavors", {"flavor": flavor}, root="/v2", version="2.90")
    assert answer.status == 200
    assert "description" not in answer.json["flavor"]
    assert "openstack-api-version" not in answer.headers


def test_version_documents_need_no_token(api: Any) -> None:
    nobody = {"X-Auth-Token": "", "OpenStack-API-Version": ""}
    listed = api.get("/", root="", headers=nobody)
    assert listed.status == 200
    assert listed.json["versions"][1] == {
        "id": "v2.1",
        "status": "CURRENT",
        "version": "2.104",
        "min_version": "2.1",
        "updated": "2013-07-23T11:33:21Z",
        "links": [{"rel": "self", "href": "http://falconframework.org/v2.1/"}],
    }
    for path in ("/v2.1", "/v2.1/"):
        shown = api.get(path, root="", headers=nobody)
        assert shown.status == 200
        assert [link["rel"] for link in shown.json["version"]["links"]] == ["self", "describedby"]
        assert shown.json["version"]["media-types"] == [
            {"base": "application/json", "type": "application/vnd.openstack.compute+json;version=2.1"}
        ]
    assert api.get("/v2/", root="", headers=nobody).json["version"]["status"] == "DEPRECATED"
    choices = api.get("/somewhere", root="", headers=nobody)
    assert choices.status == 300
    assert {choice["id"] for choice in choices.json["choices"]} == {"v2.0", "v2.1"}
    assert api.get("/healthcheck", root="", headers=nobody).status == 200


def test_the_api_describes_itself(api: Any) -> None:
    nobody = {"X-Auth-Token": "", "OpenStack-API-Version": ""}
    document = api.get("/openapi.json", root="", headers=nobody).json
    assert document["openapi"] == "3.1.0"
    assert document["info"]["version"] == "2.104"
    assert "put" in document["paths"]["/flavors/{flavor_id}"]
    old = api.get("/openapi.json", root="", headers={"X-Auth-Token": "", "OpenStack-API-Version": "compute 2.1"}).json
    assert "put" not in old["paths"]["/flavors/{flavor_id}"]


@pytest.mark.expects_errors("GET /flavors failed unexpectedly")
def test_an_unexpected_error_is_a_500_that_reveals_nothing(api: Any, cloud: Any, caplog: Any) -> None:
    cloud.services.enforcer = None
    answer = api.by("user:project").get("/flavors")
    assert (answer.status, answer.fault) == (500, "computeFault")
    assert answer.message.startswith("Unexpected API Error.")
    assert "GET /flavors failed unexpectedly" in caplog.text
