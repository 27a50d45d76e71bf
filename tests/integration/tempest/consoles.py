"""The proxy of consoles in Tempest's deployments."""

from __future__ import annotations

from tests.functional.processes.deployment import Deployment

NAME = "console-proxy"


def options(port: int) -> dict[str, dict[str, str]]:
    """Of all roles, for a proxy that will listen at a port."""
    return {
        "vnc": {"novncproxy_base_url": f"http://127.0.0.1:{port}/vnc_lite.html"},
        "serial_console": {"enabled": "true", "base_url": f"ws://127.0.0.1:{port}/"},
    }


def start(cloud: Deployment, port: int) -> None:
    """The others run already. Ready when this returns."""
    queue = f"[DEFAULT]\ntransport_url = {cloud.rabbit}/cloud\n"
    (cloud.directory / f"{NAME}.conf").write_text(queue)
    cloud.start_role(NAME, NAME, "--bind", f"127.0.0.1:{port}").wait_ready()


def stop(cloud: Deployment) -> None:
    proxy = cloud.processes.pop(NAME)
    proxy.terminate()
    assert proxy.wait_ended() == 0
