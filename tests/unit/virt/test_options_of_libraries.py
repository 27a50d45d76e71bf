"""os-vif and os-brick have options of their own, in the configuration of the compute process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import os_vif
import pytest
from oslo_config import cfg

from causeway.cli.compute import _driver
from causeway.conf import new_config


@pytest.fixture
def global_options() -> Iterator[cfg.ConfigOpts]:
    """oslo.config's own object, restored as it was."""
    yield cfg.CONF
    cfg.CONF.clear()


def test_os_vif_gets_where_the_switch_is(tmp_path: Path, global_options: cfg.ConfigOpts) -> None:
    file = tmp_path / "compute.conf"
    file.write_text(
        "[DEFAULT]\ncompute_driver = libvirt\nhost = host1\n[os_vif_ovs]\novsdb_connection = unix:/run/switch.sock\n"
    )

    _driver(new_config(config_files=[file]), tmp_path)
    os_vif.initialize()

    assert global_options.os_vif_ovs.ovsdb_connection == "unix:/run/switch.sock"
