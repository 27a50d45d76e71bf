from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from oslo_config.cfg import ConfigOpts

from causeway.conf import scheduler as options
from causeway.model.flavor import Flavor
from causeway.model.host import Aggregate, ComputeNode, Service
from causeway.scheduler.host_state import HostRecord, HostState
from causeway.scheduler.request import RequestSpec

MakeHost = Callable[..., HostState]
MakeSpec = Callable[..., RequestSpec]


@pytest.fixture
def conf() -> ConfigOpts:
    conf = ConfigOpts()
    for group, group_options in options.OPTS.items():
        conf.register_opts(group_options, group=group)
    conf([], default_config_files=[], default_config_dirs=[])
    return conf


@pytest.fixture
def make_host() -> MakeHost:
    """A host that is up, enabled and empty. ``node``, ``service``, ``record``: what is different; ``metadata``: of its
    aggregate."""

    def make(
        host: str = "host1",
        *,
        cell: str = "cell1",
        metadata: dict[str, str] | list[dict[str, str]] | None = None,
        node: dict[str, Any] | None = None,
        service: dict[str, Any] | None = None,
        record: dict[str, Any] | None = None,
        **state: Any,
    ) -> HostState:
        facts: dict[str, Any] = {
            "uuid": f"node-{host}",
            "host": host,
            "hypervisor_hostname": host,
            "hypervisor_type": "QEMU",
            "hypervisor_version": 8002000,
            "vcpus": 8,
            "memory_mb": 8192,
            "local_gb": 100,
            "supported_instances": [["x86_64", "qemu", "hvm"], ["i686", "qemu", "hvm"]],
        }
        report: dict[str, Any] = {
            "uuid": f"service-{host}",
            "host": host,
            "binary": "nova-compute",
            "last_seen_up": datetime.now(UTC).replace(tzinfo=None),
        }
        several = metadata if isinstance(metadata, list) else [metadata] if metadata else []
        return HostState(
            record=HostRecord(
                cell_uuid=f"uuid-{cell}",
                cell_name=cell,
                node=ComputeNode(**(facts | (node or {}))),
                service=Service(**(report | (service or {}))),
                **(record or {}),
            ),
            aggregates=[Aggregate(f"aggregate-{n}", f"a{n}", [host], one) for n, one in enumerate(several)],
            **state,
        )

    return make


@pytest.fixture
def make_spec() -> MakeSpec:
    """A request for the smallest server; ``extra_specs`` are its flavor's."""

    def make(*, extra_specs: dict[str, str] | None = None, **spec: Any) -> RequestSpec:
        flavor = Flavor("1", "small", vcpus=1, memory_mb=128, root_gb=1, extra_specs=extra_specs or {})
        given: dict[str, Any] = {"instance_uuid": "server", "project_id": "p", "user_id": "u", "flavor": flavor}
        return RequestSpec(**given | spec)

    return make
