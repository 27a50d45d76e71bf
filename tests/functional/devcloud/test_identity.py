"""Tokens, isolation between projects, and what is found again after a restart."""

from pathlib import Path
from typing import Any

import pytest
from keystonemiddleware import auth_token
from sqlalchemy import select

from causeway.devcloud import bootstrap
from causeway.devcloud.tables.identity import Service


def test_a_wrong_password_gets_no_token(devcloud: Any) -> None:
    assert devcloud.login("demo", "wrong").status_code == 401
    assert devcloud.login("demo", devcloud.accounts["other"].password).status_code == 401


@pytest.mark.parametrize("body", [{}, {"auth": []}, {"auth": {"identity": {"methods": ["password"]}}}, 3])
def test_a_malformed_login_is_a_bad_request(devcloud: Any, body: Any) -> None:
    reply = devcloud.http.post(f"{devcloud.url}/identity/v3/auth/tokens", json=body, timeout=20)
    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == 400


def test_nothing_is_served_without_a_token(devcloud: Any) -> None:
    for path in ("/identity/v3/projects", "/image/v2/images", "/network/v2.0/ports", "/volume/v3/volumes"):
        for headers in ({}, {"X-Auth-Token": "no-token"}):
            reply = devcloud.http.get(devcloud.url + path, headers=headers, timeout=20)
            assert (path, reply.status_code) == (path, 401)


def test_validation_shows_user_roles_and_catalog(devcloud: Any) -> None:
    subject = {"X-Subject-Token": devcloud.token("admin")}
    token = devcloud.ok("GET", "/identity/v3/auth/tokens", headers=subject)["token"]
    assert token["user"]["name"] == "admin"
    assert {"admin", "manager", "member", "reader"} == {role["name"] for role in token["roles"]}
    assert token["expires_at"].endswith("Z")
    image = next(each for each in token["catalog"] if each["type"] == "image")
    assert {each["url"] for each in image["endpoints"]} == {f"{devcloud.url}/image"}
    short = devcloud.ok("GET", "/identity/v3/auth/tokens?nocatalog", headers=subject)["token"]
    assert "catalog" not in short
    assert devcloud.call("GET", "/identity/v3/auth/tokens", user="demo", headers=subject).status_code == 403


def test_the_compute_service_has_the_name_that_clients_look_for(devcloud: Any) -> None:
    def name() -> str:
        (found,) = (
            each for each in devcloud.ok("GET", "/identity/v3/auth/catalog")["catalog"] if each["type"] == "compute"
        )
        return str(found["name"])

    assert name() == "nova"
    with devcloud.cloud.store.transaction() as session:
        session.scalars(select(Service).where(Service.type == "compute")).one().name = "causeway"
    assert name() == "causeway"
    bootstrap.run(devcloud.cloud.store, devcloud.cloud.config)
    assert name() == "nova"


def test_an_expired_and_a_revoked_token_do_not_hold(devcloud: Any) -> None:
    devcloud.cloud.token_lifetime = -1.0
    expired = devcloud.login("demo", devcloud.accounts["demo"].password).headers["X-Subject-Token"]
    devcloud.cloud.token_lifetime = 3600.0
    revoked = devcloud.login("demo", devcloud.accounts["demo"].password).headers["X-Subject-Token"]
    headers = {"X-Subject-Token": revoked}
    assert devcloud.cloud.tokens.check(revoked) is not None
    assert devcloud.call("DELETE", "/identity/v3/auth/tokens", user="admin", headers=headers).status_code == 204
    for token in (expired, revoked):
        headers = {"X-Subject-Token": token}
        assert devcloud.call("GET", "/identity/v3/auth/tokens", headers=headers).status_code == 404
        assert devcloud.cloud.tokens.check(token) is None


def test_keystonemiddleware_takes_the_tokens(devcloud: Any) -> None:
    service = devcloud.accounts["causeway"]
    seen: dict[str, str] = {}

    def app(environ: Any, start_response: Any) -> list[bytes]:
        seen.update({key: value for key, value in environ.items() if key.startswith("HTTP_X_")})
        start_response("200 OK", [])
        return [b""]

    settings = {
        "auth_type": "password",
        "auth_url": devcloud.accounts.auth_url,
        "www_authenticate_uri": devcloud.accounts.auth_url,
        "username": service.username,
        "password": service.password,
        "project_name": service.project_name,
        "user_domain_id": "default",
        "project_domain_id": "default",
    }
    guarded = auth_token.AuthProtocol(app, settings)
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "HTTP_X_AUTH_TOKEN": devcloud.token("demo")}
    environ |= {"wsgi.url_scheme": "http", "SERVER_NAME": "here", "SERVER_PORT": "80"}
    list(guarded(environ, lambda *_: None))
    assert seen["HTTP_X_IDENTITY_STATUS"] == "Confirmed"
    assert seen["HTTP_X_USER_NAME"] == "demo"
    assert set(seen["HTTP_X_ROLES"].split(",")) == {"member", "reader"}


def test_one_project_does_not_see_anothers_things(devcloud: Any) -> None:
    network = devcloud.ok("POST", "/network/v2.0/networks", {"network": {"name": "mine"}}, "demo")["network"]["id"]
    port = devcloud.ok("POST", "/network/v2.0/ports", {"port": {"network_id": network}}, "demo")["port"]["id"]
    volume = devcloud.ok("POST", "/volume/v3/volumes", {"volume": {"size": 1}}, "demo")["volume"]["id"]
    image = devcloud.ok("POST", "/image/v2/images", {"name": "mine"}, "demo")["id"]
    paths = (
        f"/network/v2.0/networks/{network}",
        f"/network/v2.0/ports/{port}",
        f"/volume/v3/volumes/{volume}",
        f"/image/v2/images/{image}",
    )
    for path in paths:
        assert devcloud.call("GET", path, user="demo").status_code == 200
        assert devcloud.call("GET", path, user="causeway").status_code == 200
        assert devcloud.call("GET", path, user="other").status_code == 404
        assert devcloud.call("DELETE", path, user="other").status_code == 404
        listed = path.rpartition("/")[0]
        assert path.rpartition("/")[2] not in devcloud.call("GET", listed, user="other").text
    assert devcloud.call("GET", "/identity/v3/users", user="demo").status_code == 403


def test_an_image_is_shared_with_its_members(devcloud: Any) -> None:
    image = devcloud.ok("POST", "/image/v2/images", {"name": "shared"}, "demo")["id"]
    other = devcloud.project("other")
    path = f"/image/v2/images/{image}"
    devcloud.ok("POST", path + "/members", {"member": other}, "demo")
    assert devcloud.call("GET", path, user="other").status_code == 200
    assert image not in devcloud.call("GET", "/image/v2/images", user="other").text
    devcloud.ok("PUT", f"{path}/members/{other}", {"status": "accepted"}, "other")
    assert image in devcloud.call("GET", "/image/v2/images", user="other").text
    assert devcloud.call("DELETE", path, user="other").status_code == 403
    assert [each["member_id"] for each in devcloud.ok("GET", path + "/members", user="demo")["members"]] == [other]


def test_an_image_that_is_not_shared_has_no_list_of_members(devcloud: Any) -> None:
    image = devcloud.ok("POST", "/image/v2/images", {"name": "own", "visibility": "private"}, "demo")["id"]
    assert devcloud.call("GET", f"/image/v2/images/{image}/members", user="demo").status_code == 403


def test_everything_is_found_again_after_a_restart(start_devcloud: Any, tmp_path: Path) -> None:
    first = start_devcloud(tmp_path)
    network = first.ok("POST", "/network/v2.0/networks", {"network": {"name": "kept"}}, "demo")["network"]
    first.ok("POST", "/network/v2.0/subnets", {"subnet": {"network_id": network["id"], "cidr": "10.1.0.0/24"}}, "demo")
    body = {"port": {"network_id": network["id"], "device_id": "d", "binding:host_id": "cell1-host1"}}
    port = first.ok("POST", "/network/v2.0/ports", body)["port"]
    volume = first.ok("POST", "/volume/v3/volumes", {"volume": {"size": 1}}, "demo")["volume"]
    image = first.ok("POST", "/image/v2/images", {"disk_format": "raw", "container_format": "bare"}, "demo")
    octets = {"Content-Type": "application/octet-stream"}
    first.call("PUT", f"/image/v2/images/{image['id']}/file", user="demo", data=b"bytes", headers=octets)
    token = first.token("demo")
    first.stop()

    second = start_devcloud(tmp_path)
    assert second.url != first.url
    assert second.accounts.users == first.accounts.users
    second.tokens["demo"] = token
    shown = second.ok("GET", f"/network/v2.0/ports/{port['id']}", user="admin")["port"]
    assert shown["fixed_ips"] == port["fixed_ips"]
    assert shown["binding:host_id"] == "cell1-host1"
    assert second.ok("GET", f"/volume/v3/volumes/{volume['id']}", user="demo")["volume"]["status"] == "available"
    assert second.call("GET", f"/image/v2/images/{image['id']}/file", user="demo").content == b"bytes"
    catalog = second.ok("GET", "/identity/v3/auth/catalog", user="demo")["catalog"]
    assert all(each["url"].startswith(second.url) for service in catalog for each in service["endpoints"])
    assert (tmp_path / "devcloud-accounts.json").stat().st_mode & 0o777 == 0o600
