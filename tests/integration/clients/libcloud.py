"""Apache Libcloud: what its driver for OpenStack offers (`libcloud_driver`)."""

from __future__ import annotations

from pathlib import Path

from tests.integration.clients import pytests
from tests.integration.clients.cloud import MEMBER
from tests.integration.clients.tools import Tool

TOOL = Tool("libcloud", ("apache-libcloud", "pytest", "pytest-timeout", "PyYAML"))


def run(regex: str, clouds: Path, directory: Path, json_file: Path | None) -> int:
    """``regex``: which tests, by their names."""
    environment = TOOL.environment(clouds, directory) | {"OS_CLOUD": MEMBER}
    module = Path(__file__).with_name("libcloud_driver.py")
    return pytests.run(TOOL.bin / "python", [module], regex, environment, directory, json_file)
