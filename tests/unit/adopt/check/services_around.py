"""Placement, Neutron and Cinder behind one small HTTP server, as far as a check asks them: it knows what a clean cloud has."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from causeway.clients import network, volume
from tests.unit.adopt.check.clean_cloud import NODES, Rows

Json = dict[str, Any]


class Around:
    """``ports``, ``attachments``: in the services' own form. ``allocations``: provider -> consumers.

    ``broken``: parts of the paths that fail, with the status. ``asked``: every request, in order.
    """

    def __init__(self, content: Rows) -> None:
        servers = [row for name in content if name != "api" for row in content[name]["instances"]]
        self.providers = {uuid: host for host, uuid in NODES.items()}
        self.allocations = {
            uuid: {row["uuid"] for row in servers if row.get("host") == host} for host, uuid in NODES.items()
        }
        self.ports = [port for row in servers for port in _ports(content, row)]
        self.attachments = [
            _attachment(device)
            for name in content
            for device in content[name].get("block_device_mapping", ())
            if device.get("attachment_id")
        ]
        self.broken: dict[str, int] = {}
        self.asked: list[str] = []
        self.url = ""

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        for part, status in self.broken.items():
            if part in path:
                return status, {}
        match path.strip("/").split("/"):
            case ["placement", "resource_providers"]:
                listed = [{"uuid": uuid, "name": name, "generation": 1} for uuid, name in self.providers.items()]
                return 200, {"resource_providers": listed}
            case ["placement", "resource_providers", uuid, "allocations"]:
                held = {each: {"resources": {"VCPU": 1}} for each in self.allocations.get(uuid, ())}
                return 200, {"allocations": held, "resource_provider_generation": 1}
            case ["network", "v2.0", "ports"]:
                return 200, {"ports": _page(self.ports, query, network.PAGE_SIZE)}
            case ["volume", "v3", "attachments", "detail"]:
                return 200, {"attachments": _page(self.attachments, query, volume.PAGE_SIZE)}
        return 404, {}

    def conf(self) -> str:
        """The part of a nova.conf with the accounts and addresses of these services."""
        account = f"auth_type = admin_token\nendpoint = {self.url}\ntoken = secret-token\nmax_retries = 0\n"
        return (
            f"[placement]\n{account}endpoint_override = {self.url}/placement\n"
            f"[neutron]\n{account}endpoint_override = {self.url}/network\nhttp_retries = 0\n"
            f"[cinder]\n{account}endpoint_template = {self.url}/volume\nhttp_retries = 0\n"
        )


def _page(listed: list[Json], query: dict[str, list[str]], size: int) -> list[Json]:
    ordered = sorted(listed, key=lambda each: str(each["id"]))
    marker = query.get("marker", [""])[0]
    return [each for each in ordered if str(each["id"]) > marker][:size]


def _ports(content: Rows, server: Json) -> Iterator[Json]:
    for name in content:
        for cache in content[name].get("instance_info_caches", ()):
            if cache["instance_uuid"] == server["uuid"]:
                for vif in json.loads(cache.get("network_info") or "[]"):
                    yield {
                        "id": vif["id"],
                        "device_id": server["uuid"],
                        "device_owner": "compute:nova",
                        "project_id": server["project_id"],
                        "binding:host_id": server.get("host") or "",
                        "binding:vif_type": "ovs",
                        "binding:vif_details": {"port_filter": True},
                    }


def _attachment(device: Json) -> Json:
    return {
        "id": device["attachment_id"],
        "volume_id": device["volume_id"],
        "instance": device["instance_uuid"],
        "status": "attached",
        "connection_info": json.loads(device["connection_info"])["data"],
    }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        self.server.around.asked.append(self.path)
        status, answer = self.server.around.answer(address.path, parse_qs(address.query))
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, around: Around) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.around = around
        around.url = f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def served(around: Around) -> Iterator[Around]:
    with _Server(around) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield around
        finally:
            server.shutdown()
            thread.join()


__all__ = ["Around", "served"]
