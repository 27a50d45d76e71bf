"""Heat on a cloud of ``causeway up``: a stack is created, gets a larger flavor, which Heat confirms by itself, and is deleted.

Heat's API and engine are processes of their own, with an account, a catalog entry, a database on PostgreSQL and a queue.
"""

from __future__ import annotations

import re
import secrets
import subprocess
from collections.abc import Callable, Iterator, Mapping
from configparser import RawConfigParser
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml
from keystoneauth1 import exceptions
from openstack.connection import Connection

from tests.functional.processes.own_process import until
from tests.functional.processes.rabbit import HOSTS, rabbit
from tests.integration.clients.cloud import ADMIN, IMAGE, MEMBER, PRIVATE, connected
from tests.integration.clients.counts import Counts
from tests.integration.clients.tools import Tool
from tests.integration.database_servers import database_server
from tests.ports import free_port

TOOL = Tool("heat", ("openstack-heat", "psycopg2-binary"))
SHARE = TOOL.bin.parent / "etc/heat"
KEY = (Path(__file__).parent / "playbooks/key.pub").read_text()
# Seconds: for Heat to be up, and for a stack to get from one state to the next.
PATIENCE = 300.0
NAME = "of-everything"


def template(flavor: str, volume_gib: int = 1) -> dict[str, Any]:
    """A server with what servers have, each a resource of its own."""
    resources = {
        "key": ("OS::Nova::KeyPair", {"name": "of-heat", "public_key": KEY}),
        "group": ("OS::Nova::ServerGroup", {"policies": ["soft-anti-affinity"]}),
        "rules": (
            "OS::Neutron::SecurityGroup",
            {"rules": [{"protocol": "tcp", "port_range_min": 22, "port_range_max": 22}]},
        ),
        "port": ("OS::Neutron::Port", {"network": PRIVATE, "security_groups": [{"get_resource": "rules"}]}),
        "volume": ("OS::Cinder::Volume", {"size": volume_gib}),
        "server": (
            "OS::Nova::Server",
            {
                "name": "of-heat",
                "image": IMAGE,
                "flavor": flavor,
                "key_name": {"get_resource": "key"},
                "networks": [{"port": {"get_resource": "port"}}],
                "scheduler_hints": {"group": {"get_resource": "group"}},
                "metadata": {"made": "by Heat"},
                # Otherwise guests ask Heat for their configuration, at an endpoint that needs an API more.
                "user_data_format": "RAW",
                "user_data": "#!/bin/sh\ntrue\n",
            },
        ),
        "attached": (
            "OS::Cinder::VolumeAttachment",
            {"instance_uuid": {"get_resource": "server"}, "volume_id": {"get_resource": "volume"}},
        ),
    }
    return {
        "heat_template_version": "2018-08-31",
        "resources": {name: {"type": kind, "properties": given} for name, (kind, given) in resources.items()},
        "outputs": {"address": {"value": {"get_attr": ["server", "first_address"]}}},
    }


def run(regex: str, clouds: Path, directory: Path, json_file: Path | None) -> int:
    """The steps follow one another; ``regex`` must leave them all."""
    counts = Counts()
    with serving(clouds, directory), connected(clouds, MEMBER) as member:
        for about, step in STEPS.items():
            if not re.search(regex, about):
                continue
            try:
                step(member)
            except AssertionError as wrong:
                print(f"fail    {about}")
                counts.failed[about] = str(wrong)
                break
            print(f"success {about}")
            counts.passed += 1
    return counts.report(json_file)


def _create(member: Connection) -> None:
    member.orchestration.create_stack(name=NAME, template=template("m1.tiny"), timeout_mins=10)
    _becomes(member, "CREATE_COMPLETE")
    (server,) = member.compute.servers()
    assert (server.status, server.flavor.name) == ("ACTIVE", "m1.tiny"), server
    assert len(server.attached_volumes) == 1, server.attached_volumes


def _is_unchanged(member: Connection) -> None:
    """The same template again changes nothing."""
    (before,) = member.compute.servers()
    _update(member, template("m1.tiny"))
    (after,) = member.compute.servers()
    assert (after.id, after.updated_at) == (before.id, before.updated_at), (before, after)


def _resize(member: Connection) -> None:
    (before,) = member.compute.servers()
    _update(member, template("m1.small"))
    (after,) = member.compute.servers()
    assert after.id == before.id, "Heat replaced the server"
    assert (after.status, after.flavor.name) == ("ACTIVE", "m1.small"), after
    done = [each.action for each in member.compute.server_actions(after)]
    assert {"resize", "confirmResize"} <= set(done), done


def _delete(member: Connection) -> None:
    member.orchestration.delete_stack(NAME)
    _becomes(member, "gone")
    left = {
        "servers": [each.id for each in member.compute.servers()],
        "volumes": [each.id for each in member.block_storage.volumes()],
        "key pairs": [each.name for each in member.compute.keypairs()],
        "server groups": [each.id for each in member.compute.server_groups()],
    }
    assert not any(left.values()), left


STEPS: dict[str, Callable[[Connection], None]] = {
    "a stack is created": _create,
    "the same template changes nothing": _is_unchanged,
    "a larger flavor resizes the server, and Heat confirms": _resize,
    "the stack is deleted with all that it made": _delete,
}


def _update(member: Connection, wanted: dict[str, Any]) -> None:
    stack = member.orchestration.get_stack(NAME)
    answer = member.orchestration.put(f"/stacks/{NAME}/{stack.id}", json={"template": wanted, "timeout_mins": 10})
    assert answer.status_code == 202, answer.text
    _becomes(member, "UPDATE_COMPLETE", since=stack.updated_at)


def _becomes(member: Connection, wanted: str, since: str | None = None) -> None:
    def status() -> tuple[str, str]:
        found = [each for each in member.orchestration.stacks() if each.name == NAME]
        if not found:
            return "gone", ""
        (shown,) = found
        # Until Heat has begun, the state is that of before.
        return ("", "") if since is not None and since == shown.updated_at else (shown.status, shown.status_reason)

    ended = until(
        status, lambda found: found[0] == wanted or found[0].endswith("_FAILED"), f"the stack to be {wanted}", PATIENCE
    )
    assert ended[0] == wanted, ended


@contextmanager
def serving(clouds: Path, directory: Path) -> Iterator[None]:
    """Heat's API and engine, as long as the block lasts. Their logs are in ``directory``."""
    port, options = free_port(), directory / "heat.conf"
    with ExitStack() as opened:
        queue = opened.enter_context(rabbit(directory / "queue"))
        database = opened.enter_context(database_server("postgresql"))("heat")
        account = _register(clouds, port)
        _write(options, _options(account, queue, database))
        environment = TOOL.environment(clouds, directory)
        subprocess.run(
            [TOOL.bin / "heat-manage", "--config-file", options, "db_sync"],
            env=environment,
            check=True,
            timeout=PATIENCE,
        )
        for name, words in {
            "heat-engine": ("--config-file", str(options)),
            "heat-wsgi-api": ("--port", str(port), "--", "--config-file", str(options)),
        }.items():
            log = opened.enter_context((directory / f"{name}.log").open("wb"))
            process = subprocess.Popen([TOOL.bin / name, *words], env=environment, stdout=log, stderr=subprocess.STDOUT)
            opened.callback(process.wait, 60)
            opened.callback(process.terminate)
        with connected(clouds, ADMIN) as admin:
            until(lambda: _engines(admin), bool, "Heat's engine to be up", PATIENCE)
        yield


def _engines(admin: Connection) -> list[Any]:
    try:
        answer = admin.orchestration.get("/services", timeout=90)
    except exceptions.ConnectionError:
        return []
    return [each for each in answer.json().get("services", []) if each["status"] == "up"] if answer.ok else []


def _register(clouds: Path, port: int) -> dict[str, str]:
    """Makes Heat's account and its entries in the catalog; returns how it logs in."""
    password = secrets.token_hex(16)
    with connected(clouds, ADMIN) as admin:
        identity = admin.identity
        project = identity.find_project("service")
        user = identity.create_user(name="heat", password=password, domain_id="default", default_project_id=project.id)
        identity.assign_project_role_to_user(project, user, identity.find_role("admin"))
        service = identity.create_service(name="heat", type="orchestration")
        for interface in ("public", "internal", "admin"):
            identity.create_endpoint(
                service_id=service.id, interface=interface, region_id="RegionOne",
                url=f"http://127.0.0.1:{port}/v1/%(tenant_id)s",
            )  # fmt: skip
    auth_url = yaml.safe_load(clouds.read_text())["clouds"][ADMIN]["auth"]["auth_url"]
    return {
        "auth_type": "password", "auth_url": auth_url, "username": "heat", "password": password, "user_domain_id": "default",
    }  # fmt: skip


def _options(account: dict[str, str], queue: str, database: str) -> dict[str, dict[str, str]]:
    return {
        "DEFAULT": {
            "transport_url": f"{queue}/{HOSTS[0]}",
            "auth_encryption_key": secrets.token_hex(16),
            "num_engine_workers": "1",
            "region_name_for_services": "RegionOne",
            "environment_dir": str(SHARE / "environment.d"),
            "template_dir": str(SHARE / "templates"),
        },
        "database": {"connection": database},
        "keystone_authtoken": account
        | {"www_authenticate_uri": account["auth_url"], "project_name": "service", "project_domain_id": "default"},
        # As whom it uses the trusts of its users.
        "trustee": account,
        "clients_keystone": {"auth_uri": account["auth_url"]},
        "paste_deploy": {"api_paste_config": str(SHARE / "api-paste.ini")},
    }


def _write(file: Path, options: Mapping[str, Mapping[str, str]]) -> None:
    wanted = RawConfigParser()
    wanted.read_dict(options)
    file.touch(mode=0o600)
    with file.open("w") as written:
        wanted.write(written)
