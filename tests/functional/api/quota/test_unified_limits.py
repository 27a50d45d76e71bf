"""[quota] driver = nova.quota.UnifiedLimitsDriver: limits of an identity service, usage of the real Placement."""

from __future__ import annotations

import base64
import threading
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import openstack
import pytest
from cheroot import wsgi

from causeway import errors
from causeway.clients.connections import calls
from causeway.clients.limits import LimitsClient
from causeway.clients.placement.types import Inventory
from causeway.conf import new_config
from causeway.conf.quota import UNIFIED
from causeway.devcloud import Accounts, Devcloud, DevcloudConfig
from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.network import RequestedNetwork
from causeway.model.states import VmState
from causeway.scheduler.request import RequestSpec
from causeway.store.api import build_requests, flavors, mappings
from causeway.store.cell import block_devices
from tests.functional.api.quota.conftest import AtOnce

IMAGE = "11111111-2222-3333-4444-555555555555"
NETWORK = "22222222-2222-3333-4444-555555555555"
SMALL = Flavor("1", "small", vcpus=1, memory_mb=512, root_gb=1)
LARGE = Flavor("2", "large", vcpus=4, memory_mb=2048, root_gb=10)
VGPU = Flavor("3", "vgpu", vcpus=1, memory_mb=512, root_gb=1, extra_specs={"resources:VGPU": "1"})
DEDICATED = Flavor("4", "dedicated", vcpus=2, memory_mb=512, root_gb=1, extra_specs={"hw:cpu_policy": "dedicated"})
ODD = Flavor("5", "odd", vcpus=1, memory_mb=512, root_gb=1, extra_specs={"resources:VGPU": "many"})
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDgV4vAHXnQnUF0n6rMbvWlJmnY8hVx1qIyLzDnUa3WG me"


class Keeper:
    """An administrator of limits, with the unmodified SDK."""

    def __init__(self, sdk: Any) -> None:
        self.identity = sdk.identity
        self.service = next(self.identity.services(type="compute")).id
        self.project = self.identity.create_project(name="limited").id

    def register(self, **limits: int) -> None:
        for name, limit in limits.items():
            self.identity.create_registered_limit(
                service_id=self.service, region_id="RegionOne", resource_name=_name(name), default_limit=limit
            )

    def own(self, **limits: int) -> None:
        for name, limit in limits.items():
            self.identity.create_limit(
                project_id=self.project,
                service_id=self.service,
                region_id="RegionOne",
                resource_name=_name(name),
                resource_limit=limit,
            )


def _name(short: str) -> str:
    return f"class:{short}" if short.isupper() else short


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accounts]:
    """Of an Identity service on a port."""
    apps: dict[str, Any] = {}

    def dispatch(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        prefix, _slash, rest = environ["PATH_INFO"].lstrip("/").partition("/")
        environ["SCRIPT_NAME"], environ["PATH_INFO"] = f"/{prefix}", f"/{rest}"
        answer: Iterable[bytes] = apps[f"/{prefix}"](environ, start_response)
        return answer

    server = wsgi.Server(("127.0.0.1", 0), dispatch, numthreads=4)
    server.prepare()
    devcloud = Devcloud(DevcloudConfig(tmp_path_factory.mktemp("identity"), f"http://127.0.0.1:{server.bind_addr[1]}"))
    known = devcloud.bootstrap()
    apps |= devcloud.apps
    thread = threading.Thread(target=server.serve, name="identity")
    thread.start()
    yield known
    server.stop()
    thread.join(20)
    devcloud.close()


def credentials(accounts: Accounts, user: str) -> dict[str, Any]:
    account = accounts[user]
    return {
        "auth_url": accounts.auth_url,
        "username": account.username,
        "password": account.password,
        "project_name": account.project_name,
        "user_domain_id": "default",
        "project_domain_id": "default",
    }


@pytest.fixture(scope="module")
def sdk(accounts: Accounts) -> Any:
    return openstack.connection.Connection(**credentials(accounts, "admin"), region_name="RegionOne")


@pytest.fixture
def keeper(sdk: Any) -> Iterator[Keeper]:
    keeper = Keeper(sdk)
    yield keeper
    for limit in sdk.identity.limits():
        sdk.identity.delete_limit(limit)
    for registered in sdk.identity.registered_limits():
        sdk.identity.delete_registered_limit(registered)
    sdk.identity.delete_project(keeper.project)


@pytest.fixture
def host(cloud: Any, real_placement: Any) -> str:
    """A host with room for everything; its provider's uuid."""
    node = cloud.host("host1")
    real_placement.ensure_provider(node.uuid, "host1")
    real_placement.set_inventory(
        node.uuid, {name: Inventory(1000) for name in ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB", "VGPU")}
    )
    return str(node.uuid)


@pytest.fixture(autouse=True)
def unified(cloud: Any, accounts: Accounts, real_placement: Any, images: Any, network: Any) -> None:
    assert cloud.services.placement is real_placement
    cloud.option("quota", "driver", UNIFIED)
    # Credentials are options of their plug-in: they are known with a configuration that has it.
    conf = new_config(oslo_limit={"auth_type": "password"} | credentials(accounts, "causeway"))
    cloud.services.limits = LimitsClient(conf)
    for flavor in (SMALL, LARGE, VGPU, DEDICATED, ODD):
        flavors.create(cloud.services.api, flavor)
    images.answers["show"] = lambda _context, image_id: ImageMeta(image_id, size=100)
    network.answers["validate_networks"] = lambda *_args, **_more: [RequestedNetwork(network_id=NETWORK)]
    network.answers["security_group_ids"] = lambda _context, _project, names: list(names)


@pytest.fixture
def member(api: Any, keeper: Keeper) -> Any:
    return api.by(f"user:{keeper.project}")


def body(flavor: str = "1", **fields: Any) -> dict[str, Any]:
    return {"server": {"name": "new", "flavorRef": flavor, "imageRef": IMAGE, "networks": "none"} | fields}


def refusal(answer: Any) -> str:
    assert answer.status == 403, answer.text
    assert answer.fault == "forbidden"
    return str(answer.message)


def held(keeper: Keeper, cloud: Any, host: str, **resources: int) -> str:
    """Something that holds resources of the project in Placement."""
    consumer = str(uuid.uuid4())
    cloud.services.placement.claim(consumer, {host: resources}, keeper.project, "user")
    return consumer


class TestServers:
    @pytest.mark.parametrize("limits", [{"servers": 2}, {"servers": 10, "class:VCPU": 2}])
    def test_requests_at_the_same_moment_pass_no_limit_together(
        self, member: Any, keeper: Keeper, at_once: AtOnce, limits: dict[str, int]
    ) -> None:
        keeper.register(**limits)
        assert at_once(*[lambda: member.post("/servers", body())] * 4) == [202, 202, 403, 403]

    def test_the_registered_limit_holds_where_the_project_has_none(self, member: Any, keeper: Keeper) -> None:
        keeper.register(servers=2)
        assert [member.post("/servers", body()).status for _ in range(2)] == [202, 202]
        assert refusal(member.post("/servers", body())) == (
            f"Project {keeper.project} is over a limit for "
            "[Resource servers is over limit of 2 due to current usage 2 and delta 1]"
        )

    def test_the_projects_own_limit_goes_before(self, member: Any, keeper: Keeper, api: Any) -> None:
        keeper.register(servers=0)
        keeper.own(servers=1)
        assert member.post("/servers", body()).status == 202
        assert "servers is over limit of 1" in refusal(member.post("/servers", body()))
        assert "servers is over limit of 0" in refusal(api.post("/servers", body()))

    @pytest.mark.parametrize(
        ("limit", "flavor", "resource"),
        [
            ({"VCPU": 3}, "2", "class:VCPU is over limit of 3 due to current usage 0 and delta 4"),
            ({"MEMORY_MB": 511}, "1", "class:MEMORY_MB is over limit of 511 due to current usage 0 and delta 512"),
            ({"DISK_GB": 9}, "2", "class:DISK_GB is over limit of 9 due to current usage 0 and delta 10"),
            ({"VGPU": 0}, "3", "class:VGPU is over limit of 0 due to current usage 0 and delta 1"),
            ({"PCPU": 1}, "4", "class:PCPU is over limit of 1 due to current usage 0 and delta 2"),
        ],
    )
    def test_every_class_can_be_limited(
        self, member: Any, keeper: Keeper, limit: dict[str, int], flavor: str, resource: str
    ) -> None:
        keeper.register(servers=-1, **limit)
        assert resource in refusal(member.post("/servers", body(flavor)))

    def test_all_that_is_exceeded_is_named(self, member: Any, keeper: Keeper) -> None:
        keeper.register(servers=0, VCPU=1, MEMORY_MB=100)
        message = refusal(member.post("/servers", body("2")))
        assert message.endswith(
            "[Resource class:MEMORY_MB is over limit of 100 due to current usage 0 and delta 2048, "
            "Resource class:VCPU is over limit of 1 due to current usage 0 and delta 4, "
            "Resource servers is over limit of 0 due to current usage 0 and delta 1]"
        )

    def test_usage_is_placements(self, member: Any, keeper: Keeper, cloud: Any, host: str) -> None:
        keeper.register(servers=-1, VCPU=4)
        held(keeper, cloud, host, VCPU=3)
        assert member.post("/servers", body()).status == 202
        # The first one has no claim yet, and counts.
        assert "current usage 4 and delta 1" in refusal(member.post("/servers", body()))

    def test_a_server_counts_once_when_it_is_claimed_and_has_no_cell_yet(
        self, member: Any, keeper: Keeper, cloud: Any, host: str
    ) -> None:
        keeper.register(servers=-1, VCPU=2)
        first = member.post("/servers", body()).json["server"]["id"]
        cloud.services.placement.claim(first, {host: {"VCPU": 1}}, keeper.project, "user")
        assert member.post("/servers", body()).status == 202
        assert "current usage 2" in refusal(member.post("/servers", body()))

    def test_as_many_of_several_servers_are_made_as_fit(self, member: Any, keeper: Keeper, cloud: Any) -> None:
        keeper.register(servers=10, VCPU=3)
        answer = member.post("/servers", body(min_count=1, max_count=8))
        assert answer.status == 202
        assert len(build_requests.list_for(cloud.services.api, keeper.project)) == 3
        refused = member.post("/servers", body(min_count=2, max_count=8))
        assert "current usage 3 and delta 2" in refusal(refused)

    def test_a_disk_of_a_volume_is_no_local_disk(self, member: Any, keeper: Keeper, volumes: Any) -> None:
        keeper.register(servers=-1, DISK_GB=0)
        volumes.answers["default_type"] = None
        device = {
            "source_type": "image",
            "destination_type": "volume",
            "uuid": IMAGE,
            "boot_index": 0,
            "volume_size": 1,
        }
        answer = member.post("/servers", body(imageRef="", block_device_mapping_v2=[device]))
        assert answer.status == 202, answer.text

    def test_dedicated_cpus_may_count_as_cpus(self, member: Any, keeper: Keeper, cloud: Any, host: str) -> None:
        cloud.option("workarounds", "unified_limits_count_pcpu_as_vcpu", True)
        keeper.register(servers=-1, VCPU=4)
        held(keeper, cloud, host, VCPU=1, PCPU=2)
        assert "class:VCPU is over limit of 4 due to current usage 3 and delta 2" in refusal(
            member.post("/servers", body("4"))
        )

    def test_a_flavor_that_asks_for_nonsense_is_the_builds_matter(self, member: Any, keeper: Keeper) -> None:
        keeper.register(servers=1, VCPU=0)
        assert member.post("/servers", body("5")).status == 202


class TestWhatNobodyHasLimited:
    def test_servers_are_required(self, member: Any) -> None:
        assert "servers is over limit of 0" in refusal(member.post("/servers", body()))

    def test_what_is_not_listed_is_not_limited(self, member: Any, cloud: Any) -> None:
        cloud.option("quota", "unified_limits_resource_list", [])
        assert member.post("/servers", body("2")).status == 202

    def test_what_is_listed_is_required(self, member: Any, keeper: Keeper, cloud: Any) -> None:
        keeper.register(servers=5)
        cloud.option("quota", "unified_limits_resource_list", ["servers", "class:DISK_GB"])
        assert "class:DISK_GB is over limit of 0" in refusal(member.post("/servers", body()))

    def test_what_is_listed_is_ignored(self, member: Any, keeper: Keeper, cloud: Any) -> None:
        keeper.register(servers=5, VCPU=8, MEMORY_MB=4096)
        cloud.option("quota", "unified_limits_resource_strategy", "ignore")
        cloud.option("quota", "unified_limits_resource_list", ["class:DISK_GB"])
        assert member.post("/servers", body()).status == 202
        cloud.option("quota", "unified_limits_resource_list", ["class:VGPU"])
        assert "class:DISK_GB is over limit of 0" in refusal(member.post("/servers", body()))

    def test_what_is_set_to_0_is_0(self, member: Any, keeper: Keeper) -> None:
        keeper.register(servers=5, DISK_GB=0)
        assert "class:DISK_GB is over limit of 0" in refusal(member.post("/servers", body()))

    @pytest.mark.parametrize("name", ["class:vcpu", "class:CUSTOM_thing", "VGPU", "class:MEMRY_MB", "instances"])
    def test_a_resource_that_can_not_be_is_no_option(self, name: str) -> None:
        with pytest.raises(ValueError, match="not a valid resource class name"):
            new_config(quota={"unified_limits_resource_list": [name]})


class TestServersThatAreThere:
    @pytest.fixture
    def server(self, cloud: Any, keeper: Keeper, host: str) -> Any:
        server = cloud.server(host="host1", node="host1", flavor=SMALL, project_id=keeper.project)
        claimed = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
        cloud.services.placement.claim(server.uuid, {host: claimed}, keeper.project, "user")
        return server

    def test_a_resize_needs_room_for_all_of_the_new_flavor(self, member: Any, keeper: Keeper, server: Any) -> None:
        keeper.register(servers=1, VCPU=4)
        refused = member.post(f"/servers/{server.uuid}/action", {"resize": {"flavorRef": "2"}})
        assert "class:VCPU is over limit of 4 due to current usage 1 and delta 4" in refusal(refused)
        keeper.own(VCPU=5)
        assert member.post(f"/servers/{server.uuid}/action", {"resize": {"flavorRef": "2"}}).status == 202

    def test_unshelve_needs_room(self, member: Any, keeper: Keeper, cloud: Any, host: str) -> None:
        keeper.register(servers=1, VCPU=4)
        shelved = cloud.server(
            host=None, node=None, flavor=LARGE, project_id=keeper.project, vm_state=VmState.SHELVED_OFFLOADED
        )
        holder = held(keeper, cloud, host, VCPU=1)
        refused = member.post(f"/servers/{shelved.uuid}/action", {"unshelve": None})
        assert "class:VCPU is over limit of 4 due to current usage 1 and delta 4" in refusal(refused)
        cloud.services.placement.delete_allocations(holder)
        assert member.post(f"/servers/{shelved.uuid}/action", {"unshelve": None}).status == 202

    def test_the_root_disk_of_a_volume_backed_server_is_not_asked_for(
        self, member: Any, keeper: Keeper, cloud: Any, server: Any
    ) -> None:
        keeper.register(servers=1, DISK_GB=9)
        with cloud.cell("cell1").write() as connection:
            device = BlockDevice(
                uuid=str(uuid.uuid4()), instance_uuid=server.uuid, boot_index=0, destination_type="volume",
                source_type="volume", volume_id=str(uuid.uuid4()), device_name="/dev/vda",
            )  # fmt: skip
            block_devices.insert(connection, [device])
        assert member.post(f"/servers/{server.uuid}/action", {"resize": {"flavorRef": "2"}}).status == 202

    def test_rebuilding_asks_for_no_servers(self, member: Any, keeper: Keeper, cloud: Any, server: Any) -> None:
        keeper.register(servers=0, VCPU=0, server_metadata_items=1)
        path = f"/servers/{server.uuid}/action"
        refused = member.post(path, {"rebuild": {"imageRef": IMAGE, "metadata": {"a": "1", "b": "2"}}})
        assert "server_metadata_items is over limit of 1 due to current usage 0 and delta 2" in refusal(refused)
        spec = RequestSpec(server.uuid, keeper.project, "user", server.flavor)
        with cloud.services.api.write() as connection:
            mappings.save_spec_in(connection, server.uuid, spec.to_persist())
        assert member.post(path, {"rebuild": {"imageRef": IMAGE, "metadata": {"a": "1"}}}).status == 202

    def test_metadata_of_a_server_is_limited(self, member: Any, keeper: Keeper, server: Any) -> None:
        keeper.register(server_metadata_items=1)
        path = f"/servers/{server.uuid}/metadata"
        assert member.post(path, {"metadata": {"a": "1"}}).status == 200
        assert "server_metadata_items" in refusal(member.post(path, {"metadata": {"b": "1"}}))
        assert member.call("DELETE", f"{path}/a").status == 204


class TestTheRest:
    def test_metadata_and_files_of_a_new_server_are_limited(self, member: Any, keeper: Keeper) -> None:
        keeper.register(
            servers=-1, server_metadata_items=1, server_injected_files=1, server_injected_file_path_bytes=5,
            server_injected_file_content_bytes=6,
        )  # fmt: skip

        def file(path: str = "/a", contents: bytes = b"small") -> dict[str, str]:
            return {"path": path, "contents": base64.b64encode(contents).decode()}

        def tried(**fields: Any) -> Any:
            return member.post("/servers", body(**fields), version="2.56")

        assert "server_metadata_items" in refusal(tried(metadata={"a": "1", "b": "2"}))
        assert "server_injected_files is over" in refusal(tried(personality=[file(), file("/b")]))
        assert "server_injected_file_path_bytes" in refusal(tried(personality=[file("/abcde")]))
        assert "server_injected_file_content_bytes" in refusal(tried(personality=[file(contents=b"quite large")]))
        assert tried(metadata={"a": "1"}, personality=[file()]).status == 202

    def test_key_pairs_are_the_users_and_the_registered_limit_holds(self, member: Any, keeper: Keeper) -> None:
        keeper.register(server_key_pairs=1)
        keeper.own(server_key_pairs=9)
        pair = {"keypair": {"name": "one", "public_key": PUBLIC_KEY, "type": "ssh"}}
        assert member.post("/os-keypairs", pair).status == 201
        pair["keypair"]["name"] = "two"
        assert "server_key_pairs is over limit of 1 due to current usage 1 and delta 1" in refusal(
            member.post("/os-keypairs", pair)
        )

    def test_server_groups_and_their_members_are_limited(self, member: Any, keeper: Keeper) -> None:
        keeper.register(servers=-1, server_groups=1, server_group_members=1)
        group = {"server_group": {"name": "g", "policy": "affinity"}}
        made = member.post("/os-server-groups", group).json["server_group"]["id"]
        assert "server_groups is over limit of 1" in refusal(member.post("/os-server-groups", group))
        wanted = body() | {"os:scheduler_hints": {"group": made}}
        assert member.post("/servers", wanted).status == 202
        assert "server_group_members is over limit of 1 due to current usage 1 and delta 1" in refusal(
            member.post("/servers", wanted)
        )


class TestShown:
    def test_quota_sets_and_limits_show_what_identity_says(
        self, member: Any, admin: Any, keeper: Keeper, cloud: Any, host: str
    ) -> None:
        keeper.register(servers=7, VCPU=8, server_groups=3, server_injected_files=2)
        keeper.own(VCPU=9)
        held(keeper, cloud, host, VCPU=2, MEMORY_MB=64)
        cloud.server(project_id=keeper.project)
        path = f"/os-quota-sets/{keeper.project}"
        shown = member.get(path, version="2.35").json["quota_set"]
        assert shown == {
            "id": keeper.project, "instances": 7, "cores": 9, "ram": 0, "metadata_items": 0, "key_pairs": 0,
            "server_groups": 3, "server_group_members": 0, "injected_files": 2, "injected_file_content_bytes": 0,
            "injected_file_path_bytes": 0, "fixed_ips": -1, "floating_ips": -1, "security_groups": -1,
            "security_group_rules": -1,
        }  # fmt: skip
        assert member.get(f"{path}/defaults").json["quota_set"]["cores"] == 8
        detail = member.get(f"{path}/detail").json["quota_set"]
        assert detail["cores"] == {"limit": 9, "in_use": 2, "reserved": 0}
        assert detail["instances"] == {"limit": 7, "in_use": 1, "reserved": 0}
        assert detail["ram"]["in_use"] == 64
        absolute = member.get("/limits").json["limits"]["absolute"]
        assert (absolute["maxTotalCores"], absolute["totalCoresUsed"], absolute["maxServerGroups"]) == (9, 2, 3)
        assert admin.get("/os-quota-class-sets/default").json["quota_class_set"]["instances"] == 7

    def test_setting_limits_here_changes_nothing(self, admin: Any, keeper: Keeper, cloud: Any) -> None:
        keeper.register(servers=7)
        path = f"/os-quota-sets/{keeper.project}"
        answer = admin.put(path, {"quota_set": {"instances": 1}})
        assert (answer.status, answer.json["quota_set"]["instances"]) == (200, 7)
        assert admin.put(path, {"quota_set": {"instances": "many"}}).status == 400
        assert admin.delete(path).status == 202
        changed = admin.put("/os-quota-class-sets/default", {"quota_class_set": {"instances": 1}})
        assert changed.json["quota_class_set"]["instances"] == 7
        cloud.option("quota", "driver", "nova.quota.DbQuotaDriver")
        assert admin.get(path).json["quota_set"]["instances"] == 10


class TestTheIdentityService:
    def test_a_raised_limit_is_seen_at_once(self, member: Any, keeper: Keeper) -> None:
        keeper.register(servers=0)
        assert member.post("/servers", body()).status == 403
        (limit,) = keeper.identity.registered_limits(resource_name="servers")
        keeper.identity.update_registered_limit(limit, default_limit=1)
        assert member.post("/servers", body()).status == 202

    def test_a_request_costs_two_calls(self, member: Any, keeper: Keeper) -> None:
        keeper.register(servers=5, server_metadata_items=5)
        calls.reset()
        assert member.post("/servers", body(metadata={"a": "1"})).status == 202
        asked = {key: count for key, count in calls.snapshot().items() if key.startswith("identity")}
        assert asked == {"identity GET /v3/limits": 1, "identity GET /v3/registered_limits": 1}

    def test_one_that_does_not_answer_is_no_reason_to_allow_anything(
        self, member: Any, keeper: Keeper, cloud: Any
    ) -> None:
        keeper.register(servers=5)
        conf = new_config(
            oslo_limit={
                "auth_type": "password",
                "auth_url": "http://127.0.0.1:9",
                "username": "u",
                "password": "p",
                "project_name": "p",
                "user_domain_id": "default",
                "project_domain_id": "default",
            }
        )
        cloud.services.limits = LimitsClient(conf)
        answer = member.post("/servers", body())
        assert answer.status == 503
        assert answer.message == "The identity service did not say what the limits are. Try again later."
        assert build_requests.list_for(cloud.services.api, keeper.project) == []
        assert mappings.count_living(cloud.services.api, keeper.project) == 0

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            ({"endpoint_id": "nowhere"}, "Can't find endpoint for nowhere"),
            ({"endpoint_service_type": "baking"}, "Service not found"),
            ({"endpoint_region_name": "Atlantis"}, "Region not found"),
        ],
    )
    def test_options_that_are_wrong_are_reported_to_administrators(
        self, accounts: Accounts, keeper: Keeper, options: dict[str, str], why: str
    ) -> None:
        wrong = new_config(oslo_limit={"auth_type": "password"} | credentials(accounts, "causeway") | options)
        with pytest.raises(errors.ServiceFailed) as failed:
            LimitsClient(wrong).of_project(keeper.project)
        assert why in failed.value.details and "[oslo_limit]" in failed.value.details

    def test_the_identity_service_is_found_by_the_endpoint_id(self, accounts: Accounts, keeper: Keeper) -> None:
        keeper.register(servers=3)
        endpoint = next(keeper.identity.endpoints(service_id=keeper.service, interface="public"))
        conf = new_config(
            oslo_limit={"auth_type": "password", "endpoint_id": endpoint.id} | credentials(accounts, "causeway")
        )
        assert LimitsClient(conf).of_project(None).registered == {"servers": 3}
