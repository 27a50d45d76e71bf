"""POST /servers: what is written, what is refused."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from causeway import errors
from causeway.clients.volume import Volume
from causeway.model.flavor import Flavor
from causeway.model.host import ServerGroup
from causeway.model.image import ImageMeta
from causeway.model.instance import KeyPair
from causeway.model.network import RequestedNetwork
from causeway.scheduler.request import RequestSpec
from causeway.store.api import aggregates, build_requests, flavors, groups, journal, keypairs, mappings
from causeway.store.database import statements

IMAGE = "11111111-2222-3333-4444-555555555555"
NETWORK = "22222222-2222-3333-4444-555555555555"
VOLUME = "33333333-2222-3333-4444-555555555555"
GROUP = "44444444-2222-3333-4444-555555555555"


@pytest.fixture(autouse=True)
def surroundings(cloud: Any, images: Any, network: Any, volumes: Any) -> None:
    """A flavor, an image, a network."""
    flavors.create(cloud.services.api, Flavor("1", "small", 1, 128, 1))
    flavors.create(cloud.services.api, Flavor("2", "disks", 1, 128, 1, ephemeral_gb=3, swap=64))
    flavors.create(cloud.services.api, Flavor("9", "private", 1, 128, 1, is_public=False))
    images.answers["show"] = lambda _context, image_id: ImageMeta(image_id, min_ram=64, min_disk=1, size=100)
    network.answers["validate_networks"] = lambda _context, requested, _count, _project, **_external: (
        requested or [RequestedNetwork(network_id=NETWORK)]
    )
    network.answers["security_group_ids"] = lambda _context, _project, names: [f"id of {name}" for name in names]
    volumes.answers["show"] = lambda _context, volume_id: Volume(
        volume_id, "available", 2, bootable=True, image_metadata={"min_ram": "64", "os_type": "linux"}
    )


def body(hints: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    server = {"name": "new", "flavorRef": "1", "imageRef": IMAGE, "networks": "auto"} | fields
    server = {key: value for key, value in server.items() if value is not None}
    return {"server": server} | ({"os:scheduler_hints": hints} if hints is not None else {})


def created(cloud: Any, answer: Any) -> build_requests.BuildRequest:
    assert answer.status == 202, answer.text
    found = build_requests.find(cloud.services.api, answer.json["server"]["id"])
    assert found is not None
    return found


def blank(**fields: Any) -> dict[str, Any]:
    return {"source_type": "blank", "destination_type": "local", **fields}


# What clients send beside imageRef as soon as there are other devices.
ROOT = {"source_type": "image", "destination_type": "local", "uuid": IMAGE, "boot_index": 0}


def local(device: Any) -> tuple[Any, ...]:
    return device.guest_format, device.volume_size, device.boot_index


class TestCreated:
    def test_the_answer_to_a_create_has_its_id_links_and_password(self, api: Any) -> None:
        answer = api.post("/servers", body())
        assert answer.status == 202
        server = answer.json["server"]
        assert server.keys() == {"id", "links", "OS-DCF:diskConfig", "security_groups", "adminPass"}
        assert server["security_groups"] == [{"name": "default"}]
        assert len(server["adminPass"]) == 12
        assert answer.headers["location"].endswith(f"/v2.1/servers/{server['id']}")

    def test_a_created_server_is_there_at_once_and_a_conductor_is_notified(
        self, api: Any, cloud: Any, conductor: Any
    ) -> None:
        uuid = api.post("/servers", body(tags=["b", "a"], metadata={"k": "v"})).json["server"]["id"]
        (build,) = journal.of_server(cloud.services.api, uuid)
        assert build.recipe == "build" and conductor.calls[-1][1]["move_id"] == build.id
        shown = api.get(f"/servers/{uuid}").json["server"]
        assert shown["status"] == "BUILD" and shown["OS-EXT-STS:task_state"] == "scheduling"
        assert shown["tags"] == ["a", "b"] and shown["metadata"] == {"k": "v"}
        assert shown["image"]["id"] == IMAGE
        assert [server["id"] for server in api.get("/servers").json["servers"]] == [uuid]
        spec = RequestSpec.from_persisted(mappings.get_spec(cloud.services.api, uuid))
        assert spec.flavor.flavorid == "1" and spec.project_id == "project" and not spec.is_volume_backed

    def test_the_key_pair_is_copied_into_the_server(self, api: Any, cloud: Any) -> None:
        keypairs.create(cloud.services.api, KeyPair("mine", "user", "ssh-rsa AAAA", "00:11"))
        request = created(cloud, api.post("/servers", body(key_name="mine")))
        assert [key.public_key for key in request.instance.keypairs] == ["ssh-rsa AAAA"]
        assert request.instance.key_name == "mine"

    def test_the_image_is_the_local_root_disk(self, api: Any, cloud: Any) -> None:
        (root,) = created(cloud, api.post("/servers", body())).block_devices
        assert (root.source_type, root.destination_type, root.boot_index, root.image_id) == ("image", "local", 0, IMAGE)

    def test_a_config_drive_is_made_if_image_or_configuration_asks_for_it(
        self, api: Any, cloud: Any, images: Any
    ) -> None:
        images.answers["show"] = lambda _context, image_id: ImageMeta(
            image_id, min_ram=64, min_disk=1, size=100, properties={"img_config_drive": "mandatory"}
        )
        assert created(cloud, api.post("/servers", body())).instance.config_drive
        images.answers["show"] = lambda _context, image_id: ImageMeta(image_id, min_ram=64, min_disk=1, size=100)
        assert not created(cloud, api.post("/servers", body())).instance.config_drive
        cloud.option("DEFAULT", "force_config_drive", True)
        assert created(cloud, api.post("/servers", body(config_drive=False))).instance.config_drive

    def test_a_server_boots_from_a_volume(self, api: Any, cloud: Any) -> None:
        device = {"source_type": "volume", "destination_type": "volume", "uuid": VOLUME, "boot_index": 0, "tag": "root"}
        request = created(cloud, api.post("/servers", body(imageRef="", block_device_mapping_v2=[device])))
        (root,) = request.block_devices
        assert root.volume_id == VOLUME and root.tag == "root" and root.volume_size == 2
        assert request.instance.image_ref == "" and request.instance.image_meta is not None
        assert request.instance.image_meta.properties == {"os_type": "linux"}
        assert RequestSpec.from_persisted(mappings.get_spec(cloud.services.api, request.instance_uuid)).is_volume_backed
        shown = api.get(f"/servers/{request.instance_uuid}").json["server"]
        assert shown["image"] == "" and shown["os-extended-volumes:volumes_attached"][0]["id"] == VOLUME

    def test_a_server_boots_from_an_image_in_a_new_volume(self, api: Any, cloud: Any) -> None:
        device = {
            "source_type": "image",
            "destination_type": "volume",
            "uuid": IMAGE,
            "boot_index": "0",
            "volume_size": "3",
        }
        request = created(cloud, api.post("/servers", body(imageRef=None, block_device_mapping_v2=[device])))
        (root,) = request.block_devices
        assert root.image_id == IMAGE and root.volume_size == 3 and root.volume_id is None
        assert request.instance.image_ref == "" and request.instance.image_meta is not None

    def test_a_server_may_have_further_disks(self, api: Any, cloud: Any) -> None:
        devices = [
            ROOT,
            {"source_type": "volume", "destination_type": "volume", "uuid": VOLUME, "boot_index": -1},
            {"source_type": "blank", "destination_type": "volume", "volume_size": 1, "delete_on_termination": True},
        ]
        request = created(cloud, api.post("/servers", body(block_device_mapping_v2=devices)))
        assert [device.boot_index for device in request.block_devices] == [0, None, None]
        assert len({device.uuid for device in request.block_devices}) == 3
        assert request.block_devices[2].delete_on_termination

    def test_a_server_has_its_flavors_ephemeral_disk_and_swap(self, api: Any, cloud: Any) -> None:
        request = created(cloud, api.post("/servers", body(flavorRef="2")))
        assert [local(device) for device in request.block_devices[1:]] == [(None, 3, -1), ("swap", 64, -1)]

    def test_ephemeral_space_may_be_divided_and_swap_be_less(self, api: Any, cloud: Any) -> None:
        devices = [ROOT, blank(volume_size=1, guest_format="vfat"), blank(volume_size=2, delete_on_termination=False)]
        cloud.option("DEFAULT", "max_local_block_devices", -1)
        devices.append(blank(guest_format="swap", volume_size=32, boot_index=-1))
        request = created(cloud, api.post("/servers", body(flavorRef="2", block_device_mapping_v2=devices)))
        found = [local(device) for device in request.block_devices[1:]]
        assert found == [("vfat", 1, -1), (None, 2, -1), ("swap", 32, -1)]

    def test_what_has_no_size_has_the_flavors(self, api: Any, cloud: Any) -> None:
        devices = [ROOT, blank(guest_format="ext4"), blank(guest_format="swap")]
        request = created(cloud, api.post("/servers", body(flavorRef="2", block_device_mapping_v2=devices)))
        assert [local(device) for device in request.block_devices[1:]] == [("ext4", 3, -1), ("swap", 64, -1)]
        request = created(cloud, api.post("/servers", body(block_device_mapping_v2=devices)))
        assert len(request.block_devices) == 1

    def test_the_legacy_form_of_devices_is_accepted(self, api: Any, cloud: Any) -> None:
        device = {"device_name": "vda", "volume_id": VOLUME, "delete_on_termination": "1"}
        request = created(
            cloud,
            api.post(
                "/os-volumes_boot", body(imageRef="", networks=None, block_device_mapping=[device]), version="2.1"
            ),
        )
        assert request.block_devices[0].boot_index == 0 and request.block_devices[0].delete_on_termination

    def test_several_are_created_at_once(self, api: Any, cloud: Any, conductor: Any) -> None:
        wanted = body(min_count=2, max_count="3", return_reservation_id=True, hostname="web")
        answer = api.post("/servers", wanted)
        assert answer.status == 202 and answer.json.keys() == {"reservation_id"}
        found = build_requests.list_for(cloud.services.api, "project")
        assert sorted(r.instance.display_name for r in found) == ["new-1", "new-2", "new-3"]
        assert sorted(r.instance.hostname for r in found) == ["web-1", "web-2", "web-3"]
        assert {r.instance.reservation_id for r in found} == {answer.json["reservation_id"]}
        assert len(conductor.calls) == 3

    def test_as_many_are_created_as_the_quota_allows(self, api: Any, cloud: Any) -> None:
        cloud.option("quota", "instances", 2)
        assert api.post("/servers", body(min_count=1, max_count=5)).status == 202
        assert len(build_requests.list_for(cloud.services.api, "project")) == 2

    def test_networks_are_none_auto_or_named(self, api: Any, cloud: Any) -> None:
        assert created(cloud, api.post("/servers", body(networks="none"))).requested_networks == []
        auto = created(cloud, api.post("/servers", body(networks="auto"))).requested_networks
        assert [found.network_id for found in auto] == [NETWORK]
        wanted = [{"uuid": NETWORK, "fixed_ip": "10.0.0.7", "tag": "nic"}, {"port": VOLUME}]
        given = created(cloud, api.post("/servers", body(networks=wanted))).requested_networks
        assert given == [
            RequestedNetwork(network_id=NETWORK, fixed_ip="10.0.0.7", tag="nic"),
            RequestedNetwork(port_id=VOLUME),
        ]

    def test_security_groups_are_given_by_name(self, api: Any, cloud: Any) -> None:
        answer = api.post("/servers", body(security_groups=[{"name": "web"}, {"name": "db"}]))
        assert answer.json["server"]["security_groups"] == [{"name": "web"}, {"name": "db"}]
        assert created(cloud, answer).instance.security_groups == ["web", "db"]

    def test_a_server_is_created_in_a_server_group(self, api: Any, cloud: Any) -> None:
        groups.create(cloud.services.api, ServerGroup(GROUP, "g", "project", "user", "anti-affinity"))
        request = created(cloud, api.post("/servers", body({"group": GROUP, "_nova_check_type": "rebuild"})))
        spec = RequestSpec.from_persisted(mappings.get_spec(cloud.services.api, request.instance_uuid))
        assert spec.server_group is not None and spec.server_group.policy == "anti-affinity"
        assert groups.get(cloud.services.api, GROUP).members == [request.instance_uuid]
        shown = api.get(f"/servers/{request.instance_uuid}").json["server"]
        assert shown["server_groups"] == [GROUP]
        # internal hints are not the users' (bug 2151252)
        assert shown["scheduler_hints"] == {"group": [GROUP]}

    def test_availability_zone_and_host_are_requested(self, api: Any, admin: Any, cloud: Any) -> None:
        cloud.host("host1")
        aggregate = aggregates.create(cloud.services.api, "a", {"availability_zone": "zone1"})
        aggregates.add_host(cloud.services.api, aggregate.id, "host1")
        request = created(cloud, api.post("/servers", body(availability_zone="zone1")))
        assert request.instance.pinned_availability_zone == "zone1"
        assert api.post("/servers", body(availability_zone="zone1:host1")).status == 403
        assert api.post("/servers", body(host="host1")).status == 403
        forced = created(cloud, admin.post("/servers", body(availability_zone="zone1:host1")))
        assert mappings.get_spec(cloud.services.api, forced.instance_uuid)["force_hosts"] == ["host1"]
        asked = created(cloud, admin.post("/servers", body(host="host1")))
        spec = mappings.get_spec(cloud.services.api, asked.instance_uuid)
        assert spec["requested_destination"]["host"] == "host1"
        assert admin.post("/servers", body(host="host7")).status == 400

    def test_host_names_are_made_of_names(self, api: Any, cloud: Any) -> None:
        assert created(cloud, api.post("/servers", body(name="My Web_Server.1"))).instance.hostname == "my-web-server-1"
        request = created(cloud, api.post("/servers", body(name="サーバ")))
        assert request.instance.hostname == f"server-{request.instance_uuid}"

    def test_personality_files_are_accepted_before_2_57(self, api: Any, cloud: Any) -> None:
        files = [{"path": "/etc/motd", "contents": base64.b64encode(b"hello").decode()}]
        request = created(cloud, api.post("/servers", body(personality=files), version="2.56"))
        assert request.instance.injected_files[0].path == "/etc/motd"
        assert api.post("/servers", body(personality=files), version="2.57").status == 400
        cloud.option("quota", "injected_files", 0)
        assert api.post("/servers", body(personality=files), version="2.56").status == 403

    def test_a_server_costs_one_transaction(self, api: Any) -> None:
        # The first request of a project makes its total of what was accepted.
        assert api.post("/servers", body()).status == 202
        before = statements.snapshot()
        assert api.post("/servers", body()).status == 202
        assert (statements.snapshot() - before)["api"] <= 9


class TestRefused:
    @pytest.mark.parametrize(
        ("fields", "version"),
        [
            ({"name": ""}, "2.96"),
            ({"name": " "}, "2.96"),
            ({"name": "x" * 256}, "2.96"),
            ({"name": 7}, "2.96"),
            ({"name": None}, "2.96"),
            ({"flavorRef": None}, "2.96"),
            ({"flavorRef": "nonsense"}, "2.96"),
            ({"flavorRef": "9"}, "2.96"),
            ({"flavorRef": {}}, "2.96"),
            ({"imageRef": "nonsense"}, "2.96"),
            ({"imageRef": ""}, "2.96"),
            ({"imageRef": None}, "2.96"),
            ({"imageRef": []}, "2.96"),
            ({"networks": None}, "2.37"),
            ({"networks": "some"}, "2.96"),
            ({"networks": [{"uuid": "nonsense"}]}, "2.96"),
            ({"networks": [{}]}, "2.96"),
            ({"networks": [{"port": VOLUME, "fixed_ip": "10.0.0.1"}]}, "2.96"),
            ({"networks": [{"port": VOLUME}, {"port": VOLUME}]}, "2.96"),
            ({"networks": [{"uuid": NETWORK, "fixed_ip": "300.0.0.1"}]}, "2.96"),
            ({"networks": [{"uuid": NETWORK, "tag": "t"}]}, "2.41"),
            ({"networks": "auto"}, "2.36"),
            ({"metadata": {"k": 1}}, "2.96"),
            ({"metadata": {"": "v"}}, "2.96"),
            ({"metadata": {"k": "v" * 256}}, "2.96"),
            ({"user_data": "not base64"}, "2.96"),
            ({"user_data": "A" * 65540}, "2.96"),
            ({"tags": ["a"]}, "2.51"),
            ({"tags": ["a/b"]}, "2.96"),
            ({"tags": [str(number) for number in range(51)]}, "2.96"),
            ({"description": "x"}, "2.18"),
            ({"hostname": "x"}, "2.89"),
            ({"hostname": "a.b"}, "2.93"),
            ({"hostname": "-a"}, "2.93"),
            ({"hostname": "a b"}, "2.96"),
            ({"host": "h"}, "2.73"),
            ({"min_count": 0}, "2.96"),
            ({"min_count": 3, "max_count": 2}, "2.96"),
            ({"max_count": "many"}, "2.96"),
            ({"key_name": "unknown"}, "2.96"),
            ({"availability_zone": "nowhere"}, "2.96"),
            ({"security_groups": "web"}, "2.96"),
            ({"config_drive": "perhaps"}, "2.96"),
            ({"accessIPv4": "nonsense"}, "2.96"),
            ({"accessIPv6": "10.0.0.1"}, "2.96"),
            ({"nonsense": 1}, "2.96"),
            ({"block_device_mapping_v2": "x"}, "2.96"),
            ({"block_device_mapping_v2": [{}]}, "2.96"),
            ({"block_device_mapping_v2": [{"source_type": "volume"}]}, "2.96"),
            ({"block_device_mapping_v2": [{"source_type": "tape", "uuid": VOLUME}]}, "2.96"),
            ({"block_device_mapping_v2": [{"source_type": "volume", "uuid": "x"}]}, "2.96"),
            ({"block_device_mapping_v2": [{"source_type": "volume", "uuid": VOLUME, "destination_type": "local"}]}, "2.96"),
            ({"block_device_mapping_v2": [{"source_type": "volume", "uuid": VOLUME, "boot_index": 2}]}, "2.96"),
            ({"block_device_mapping_v2": [{"source_type": "volume", "uuid": VOLUME, "boot_index": "9" * 10}]}, "2.96"),
            ({"block_device_mapping_v2": [{"source_type": "image", "uuid": IMAGE, "destination_type": "local"}]}, "2.96"),
            ({"block_device_mapping_v2": [{"source_type": "image", "uuid": IMAGE, "destination_type": "volume"}]}, "2.96"),
            ({"block_device_mapping_v2": [{"source_type": "blank", "destination_type": "volume"}]}, "2.96"),
            ({"block_device_mapping_v2": [{"source_type": "blank", "volume_type": "ssd"}]}, "2.67"),
            ({"block_device_mapping_v2": [{"source_type": "blank", "volume_size": "0"}]}, "2.1"),
            ({"block_device_mapping_v2": [ROOT, {"source_type": "volume", "uuid": VOLUME}], "max_count": 2}, "2.96"),
            ({"block_device_mapping_v2": [ROOT, *[{"source_type": "blank"}] * 4]}, "2.96"),
            ({"imageRef": "", "block_device_mapping_v2": [{"source_type": "volume", "uuid": VOLUME}]}, "2.96"),
        ],
    )  # fmt: skip
    def test_bad_requests_are_refused_and_nothing_is_built(
        self, api: Any, cloud: Any, conductor: Any, fields: dict[str, Any], version: str
    ) -> None:
        wanted = body(**fields)
        if version in ("2.36", "2.1", "2.18") and "networks" not in fields:
            del wanted["server"]["networks"]
        answer = api.post("/servers", wanted, version=version)
        assert (answer.status, answer.fault) == (400, "badRequest"), answer.text
        assert conductor.calls == [] and build_requests.list_for(cloud.services.api, None) == []

    @pytest.mark.parametrize(
        ("devices", "message"),
        [
            ([blank(volume_size=4)], "Ephemeral disks requested are larger than the instance type allows"),
            ([blank(volume_size=1), blank()], "Ephemeral disks requested are larger than the instance type allows"),
            ([blank(guest_format="swap", volume_size=65)], "Swap drive requested is larger than instance type allows."),
            ([blank(guest_format="swap", volume_size=8)] * 2, "More than one swap drive requested."),
            ([blank(volume_size=1)] * 3, "You specified more local devices than the limit allows"),
            ([blank(guest_format="../../x")], "../../x format is not supported"),
        ],
    )
    def test_local_disks_that_the_flavor_does_not_give(self, api: Any, devices: list[Any], message: str) -> None:
        answer = api.post("/servers", body(flavorRef="2", block_device_mapping_v2=[ROOT, *devices]))
        assert answer.status == 400 and message in answer.message

    @pytest.mark.parametrize(
        "sent", [b"", b"{", b"[]", b"null", b'"x"', b'{"server": null}', b'{"server": []}', b"\xff", b"{}"]
    )
    def test_malformed_bodies_are_refused(self, api: Any, sent: bytes) -> None:
        answer = api.post("/servers", body=sent, headers={"Content-Type": "application/json"})
        assert answer.fault == "badRequest"

    def test_groups_that_are_not_the_projects_are_refused(self, api: Any, cloud: Any) -> None:
        groups.create(cloud.services.api, ServerGroup(GROUP, "g", "elsewhere", "user", "affinity"))
        assert api.post("/servers", body({"group": GROUP})).status == 400
        assert api.post("/servers", body({"group": VOLUME})).status == 400
        assert api.post("/servers", body({"group": "nonsense"})).status == 400

    def test_a_private_flavor_of_another_project_is_refused(self, api: Any, admin: Any) -> None:
        assert "could not be found" in api.post("/servers", body(flavorRef="9")).message
        assert admin.post("/servers", body(flavorRef="9")).status == 202

    @pytest.mark.parametrize(
        "image",
        [
            ImageMeta(IMAGE, status="queued"),
            ImageMeta(IMAGE, min_ram=1000),
            ImageMeta(IMAGE, min_disk=2),
            ImageMeta(IMAGE, size=2 << 30),
        ],
    )
    def test_images_that_do_not_fit(self, api: Any, images: Any, image: ImageMeta) -> None:
        images.answers["show"] = image
        assert api.post("/servers", body()).status == 400

    def test_an_image_that_is_not_there(self, api: Any, images: Any) -> None:
        images.answers["show"] = errors.ImageNotFound("Image could not be found.")
        assert api.post("/servers", body()).status == 400

    def test_a_service_that_does_not_answer(self, api: Any, images: Any, conductor: Any) -> None:
        images.answers["show"] = errors.ServiceFailed("The image service does not answer.")
        assert api.post("/servers", body()).status == 503
        assert conductor.calls == []

    @pytest.mark.parametrize(
        "volume",
        [
            Volume(VOLUME, "in-use", 2, bootable=True),
            Volume(VOLUME, "available", 2, bootable=False),
            Volume(VOLUME, "available", 2, bootable=True, image_metadata={"min_ram": "4096"}),
            Volume(VOLUME, "available", 2, bootable=True, image_metadata={"min_disk": "4"}),
            errors.VolumeNotFound("Volume could not be found."),
        ],
    )
    def test_volumes_that_do_not_do(self, api: Any, volumes: Any, volume: Any) -> None:
        volumes.answers["show"] = volume
        device = {"source_type": "volume", "destination_type": "volume", "uuid": VOLUME, "boot_index": 0}
        answer = api.post("/servers", body(imageRef="", block_device_mapping_v2=[device]))
        assert answer.status == 400, answer.text

    @pytest.mark.parametrize(("option", "limit"), [("instances", 0), ("cores", 0), ("ram", 127), ("metadata_items", 0)])
    def test_what_exceeds_a_quota_is_refused(self, api: Any, cloud: Any, option: str, limit: int) -> None:
        cloud.option("quota", option, limit)
        assert api.post("/servers", body(metadata={"a": "b"})).fault == "forbidden"
        assert build_requests.list_for(cloud.services.api, None) == []

    def test_zero_disk_flavors_are_for_volumes(self, api: Any, admin: Any, cloud: Any) -> None:
        flavors.create(cloud.services.api, Flavor("0", "diskless", 1, 128, 0))
        assert api.post("/servers", body(flavorRef="0")).status == 403
        assert admin.post("/servers", body(flavorRef="0")).status == 202

    def test_the_boot_from_volume_path_ends_with_2_102(self, api: Any) -> None:
        assert api.post("/os-volumes_boot", body(), version="2.103").status == 404
