"""Routes that few clients use: the old alias of servers, tokens of consoles, nodes, shares, assisted snapshots, versions."""

from __future__ import annotations

import json
from typing import Any, ClassVar
from urllib.parse import quote

import pytest

from causeway.clients.volume import Volume
from causeway.model.instance import Instance
from causeway.model.states import VmState
from causeway.store.cell import instances

NOBODYS = "99999999-2222-3333-4444-555555555555"
VOLUME = "22222222-2222-3333-4444-555555555555"


@pytest.fixture
def service(admin: Any) -> Any:
    return admin.by("service")


class TestVolumesBoot:
    """``/os-volumes_boot`` is another name of ``/servers`` until 2.102."""

    def test_lists_shows_changes_and_acts(self, api: Any, server: Instance) -> None:
        path = f"/os-volumes_boot/{server.uuid}"
        assert api.get("/os-volumes_boot", version="2.1").json == api.get("/servers", version="2.1").json
        assert (
            api.get("/os-volumes_boot/detail", version="2.102").json == api.get("/servers/detail", version="2.102").json
        )
        assert api.get(path, version="2.60").json == api.get(f"/servers/{server.uuid}", version="2.60").json
        assert api.put(path, {"server": {"name": "other"}}, version="2.1").json["server"]["name"] == "other"
        assert api.post(f"{path}/action", {"lock": None}, version="2.1").status == 202
        assert api.get(path, version="2.9").json["server"]["locked"] is True
        assert api.post(f"{path}/action", {"dance": None}, version="2.1").status == 400
        assert api.delete(f"/os-volumes_boot/{NOBODYS}", version="2.1").status == 404

    def test_volumes_boot_is_no_more_in_2_103(self, api: Any, server: Instance) -> None:
        path = f"/os-volumes_boot/{server.uuid}"
        for method, one in (
            ("GET", "/os-volumes_boot"),
            ("GET", "/os-volumes_boot/detail"),
            ("GET", path),
            ("DELETE", path),
        ):
            assert api.call(method, one, version="2.103").status == 404
        assert api.post(f"{path}/action", {"lock": None}, version="2.103").status == 404
        assert api.get(f"/servers/{server.uuid}").status == 200

    def test_what_belongs_to_a_server_is_not_below_it(self, api: Any, server: Instance) -> None:
        assert api.get(f"/os-volumes_boot/{server.uuid}/metadata", version="2.1").status == 404


class TestConsoleAuthTokens:
    def test_a_token_that_is_not_known(self, api: Any, admin: Any) -> None:
        path = f"/os-console-auth-tokens/{NOBODYS}"
        assert admin.get(path, version="2.31").status == 404
        assert admin.get(path, version="2.104").message == "Token not found"
        assert api.get(path, version="2.31").status == 403

    def test_tokens_of_consoles_that_are_gone_are_refused(self, admin: Any) -> None:
        assert admin.get(f"/os-console-auth-tokens/{NOBODYS}", version="2.30").status == 400

    def test_unknown_queries_are_refused_from_2_99(self, admin: Any) -> None:
        path = f"/os-console-auth-tokens/{NOBODYS}?colour=red"
        assert admin.get(path, version="2.98").status == 404
        assert admin.get(path, version="2.99").status == 400


class TestBareMetalNodes:
    def test_there_are_no_nodes_to_pass_on(self, api: Any, admin: Any) -> None:
        for path in ("/os-baremetal-nodes", "/os-baremetal-nodes/1"):
            assert api.get(path, version="2.35").status == 403
            assert admin.get(path, version="2.35").status == 501
            assert admin.get(path, version="2.36").status == 404

    def test_what_the_service_itself_has_to_be_asked(self, admin: Any) -> None:
        assert admin.post("/os-baremetal-nodes", {"node": {}}, version="2.1").status == 400
        assert admin.delete("/os-baremetal-nodes/1", version="2.35").status == 400
        for name in ("add_interface", "remove_interface"):
            assert admin.post("/os-baremetal-nodes/1/action", {name: {}}, version="2.35").status == 400
            assert admin.post("/os-baremetal-nodes/1/action", {name: {}}, version="2.36").status == 404


class TestShares:
    def test_a_server_has_none(self, api: Any, server: Instance) -> None:
        path = f"/servers/{server.uuid}/shares"
        assert api.get(path, version="2.97").json == {"shares": []}
        assert api.get(path, version="2.96").status == 404
        assert api.get(f"{path}/{VOLUME}", version="2.97").status == 404
        assert api.get(f"/servers/{NOBODYS}/shares", version="2.97").status == 404

    def test_create_checks_body_server_and_state_before_it_refuses(
        self, api: Any, cloud: Any, server: Instance
    ) -> None:
        path = f"/servers/{server.uuid}/shares"
        body = {"share": {"share_id": VOLUME, "tag": "data-1"}}
        wrong: dict[str, Any]
        for wrong in (
            {},
            {"share": {}},
            {"share": {"share_id": "1"}},
            {"share": {"share_id": VOLUME, "tag": "a b"}},
            {"share": {"share_id": VOLUME, "tag": ""}},
            {"share": {"share_id": VOLUME, "colour": "red"}},
        ):
            assert api.post(f"/servers/{NOBODYS}/shares", wrong, version="2.97").status == 400, wrong
        assert api.post(f"/servers/{NOBODYS}/shares", body, version="2.97").status == 404
        assert api.post(path, body, version="2.97").status == 409
        stop(cloud, server)
        assert api.post(path, body, version="2.97").fault == "notImplemented"
        assert api.post(path, {"share": {"share_id": VOLUME}}, version="2.104").status == 501
        assert api.post(path, body, version="2.96").status == 404

    def test_a_share_that_is_not_there_is_not_deleted(self, api: Any, cloud: Any, server: Instance) -> None:
        path = f"/servers/{server.uuid}/shares/{VOLUME}"
        assert api.delete(path, version="2.97").status == 409
        stop(cloud, server)
        assert api.delete(path, version="2.97").status == 404
        assert api.delete(path, version="2.96").status == 404


class TestAssistedVolumeSnapshots:
    CREATE = "/os-assisted-volume-snapshots"
    BODY: ClassVar[dict[str, Any]] = {
        "snapshot": {
            "volume_id": VOLUME,
            "create_info": {"snapshot_id": NOBODYS, "type": "qcow2", "new_file": "new_file_name", "id": NOBODYS},
        }
    }

    @pytest.mark.parametrize("version", ["2.1", "2.104"])
    def test_bad_snapshots_and_other_callers_are_refused(
        self, api: Any, service: Any, volumes: Any, version: str
    ) -> None:
        volumes.answers["show"] = Volume(VOLUME, "available", 1)
        # No server has the volume.
        assert service.post(self.CREATE, self.BODY, version=version).status == 400
        assert api.post(self.CREATE, self.BODY, version=version).status == 403
        info = self.BODY["snapshot"]["create_info"]
        wrong: dict[str, Any]
        for wrong in (
            {},
            {"snapshot": {"volume_id": VOLUME}},
            {"snapshot": {"volume_id": "", "create_info": info}},
            {"snapshot": {"volume_id": VOLUME, "create_info": info | {"type": "raw"}}},
            {"snapshot": {"volume_id": VOLUME, "create_info": info | {"colour": "red"}}},
        ):
            assert api.post(self.CREATE, wrong, version=version).status == 400, wrong

    def test_bad_deletes_and_other_callers_are_refused(self, api: Any, service: Any, volumes: Any) -> None:
        volumes.answers["show"] = Volume(VOLUME, "available", 1)
        path = f"{self.CREATE}/{NOBODYS}"
        good = "?delete_info=" + quote(json.dumps({"volume_id": VOLUME}))
        assert "no server has it" in service.delete(path + good, version="2.1").message
        assert api.delete(path + good, version="2.1").status == 403
        for wrong in ("", "?delete_info=volume", "?delete_info={}", "?delete_info=[]", "?delete_info=" + "[" * 5_000):
            assert service.delete(path + wrong, version="2.1").status == 400, wrong[:40]
        assert "no server has it" in service.delete(f"{path}{good}&colour=red", version="2.74").message
        assert service.delete(f"{path}{good}&colour=red", version="2.75").status == 400


def test_versions_are_shown_by_their_ids(api: Any) -> None:
    documents = {name: api.get(f"/{short}/", root="").json for name, short in (("v2.0", "v2"), ("v2.1", "v2.1"))}
    for name, document in documents.items():
        assert api.get(f"/versions/{name}").json == document
    assert api.get("/project/versions/v2.1").json == documents["v2.1"]
    # The legacy endpoint describes itself only.
    assert api.get("/versions/v2.1", root="/v2").json == documents["v2.0"]
    assert api.get("/versions/v3").status == 404
    assert api.get("/versions/v2.1", headers={"X-Auth-Token": ""}).status == 401


def stop(cloud: Any, server: Instance) -> None:
    instances.update(cloud.cell("cell1"), server.uuid, vm_state=VmState.STOPPED)
