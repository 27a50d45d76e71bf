"""What devcloud is started with."""

from dataclasses import dataclass
from pathlib import Path

import requests


@dataclass(frozen=True)
class DevcloudConfig:
    """`base_url` is that of the one server on which all services of the catalog are mounted.

    `internal_url`: where calls between services go, if not there, too. `compute_url`: where the Compute API is, if it is
    not mounted there. `transport`: what it calls Compute with, for example without a socket; sessions of its own if None.
    """

    state_dir: Path
    base_url: str
    region: str = "RegionOne"
    compute_url: str | None = None
    internal_url: str | None = None
    transport: requests.Session | None = None
