"""What the ``openstack`` client looks for in a plug-in."""

from __future__ import annotations

import argparse
from typing import Any

from osc_lib import utils

DEFAULT_API_VERSION = "1"
API_NAME = "causeway"
API_VERSION_OPTION = "os_causeway_api_version"
API_VERSIONS = ("1",)


def make_client(instance: Any) -> Any:
    """openstacksdk's proxy of the Compute API, which our resources are part of."""
    return instance.sdk_connection.compute


def build_option_parser(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument(
        "--os-causeway-api-version",
        metavar="<causeway-api-version>",
        default=utils.env("OS_CAUSEWAY_API_VERSION", default=DEFAULT_API_VERSION),
        help=f"Version of Causeway's commands, default={DEFAULT_API_VERSION} (Env: OS_CAUSEWAY_API_VERSION)",
    )
    return parser
