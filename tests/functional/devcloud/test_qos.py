"""Policies of ports and networks, as their views show them from the first one on, whatever happened in between."""

from pathlib import Path
from typing import Any


def test_views_show_the_policy_that_is_there_now(devcloud: Any) -> None:
    policies = [_policy(devcloud, name) for name in ("gold", "silver")]
    network = devcloud.ok("POST", "/network/v2.0/networks", {"network": {"name": "n"}})["network"]["id"]
    assert _network_policy(devcloud, network) is None
    subnet = {"network_id": network, "ip_version": 4, "cidr": "10.8.0.0/24"}
    devcloud.ok("POST", "/network/v2.0/subnets", {"subnet": subnet})

    port = _port(devcloud, network, qos_policy_id=policies[0])
    plain = _port(devcloud, network)
    assert (_shown(devcloud, port), _shown(devcloud, plain)) == ((policies[0], None), (None, None))

    _set(devcloud, f"networks/{network}", "network", policies[1])
    assert (_shown(devcloud, port), _shown(devcloud, plain)) == ((policies[0], policies[1]), (None, policies[1]))
    _set(devcloud, f"ports/{port}", "port", policies[1])
    assert _shown(devcloud, port)[0] == policies[1]

    # Refused as a whole: the policy does not exist.
    assert (
        devcloud.call("PUT", f"/network/v2.0/ports/{port}", {"port": {"qos_policy_id": "no-such"}}).status_code == 404
    )
    assert _shown(devcloud, port)[0] == policies[1]
    _set(devcloud, f"ports/{port}", "port", None)
    assert _shown(devcloud, port) == (None, policies[1])


def test_policies_outlive_a_restart(start_devcloud: Any, tmp_path: Path) -> None:
    before = start_devcloud(tmp_path)
    policy = _policy(before, "kept")
    network = before.ok("POST", "/network/v2.0/networks", {"network": {"name": "n", "qos_policy_id": policy}})[
        "network"
    ]
    before.stop()
    assert _network_policy(start_devcloud(tmp_path), network["id"]) == policy


def test_a_quota_says_how_much_is_used(devcloud: Any) -> None:
    project = devcloud.project("demo")
    path = f"/network/v2.0/quotas/{project}/details.json"
    before = devcloud.ok("GET", path)["quota"]
    network = devcloud.ok("POST", "/network/v2.0/networks", {"network": {"name": "n"}}, "demo")["network"]["id"]
    devcloud.ok("PUT", f"/network/v2.0/quotas/{project}", {"quota": {"network": 7}})
    _port(devcloud, network, project_id=project)
    after = devcloud.ok("GET", path)["quota"]
    assert after["network"] == {"limit": 7, "used": before["network"]["used"] + 1, "reserved": 0}
    assert after["port"]["used"] == before["port"]["used"] + 1
    assert after["subnetpool"] == {"limit": -1, "used": 0, "reserved": 0}


def _policy(devcloud: Any, name: str) -> str:
    return str(devcloud.ok("POST", "/network/v2.0/qos/policies", {"policy": {"name": name}})["policy"]["id"])


def _port(devcloud: Any, network: str, **more: Any) -> str:
    return str(devcloud.ok("POST", "/network/v2.0/ports", {"port": {"network_id": network, **more}})["port"]["id"])


def _set(devcloud: Any, path: str, kind: str, policy: str | None) -> None:
    devcloud.ok("PUT", f"/network/v2.0/{path}", {kind: {"qos_policy_id": policy}})


def _shown(devcloud: Any, port: str) -> tuple[str | None, str | None]:
    found = devcloud.ok("GET", f"/network/v2.0/ports/{port}")["port"]
    return found["qos_policy_id"], found["qos_network_policy_id"]


def _network_policy(devcloud: Any, network: str) -> str | None:
    found: str | None = devcloud.ok("GET", f"/network/v2.0/networks/{network}")["network"]["qos_policy_id"]
    return found
