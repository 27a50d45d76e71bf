"""The configuration of devcloud."""

from dataclasses import dataclass
from pathlib import Path

import requests


@dataclass(frozen=True)
class DevcloudConfig:
    """`base_url`: of the server on which all services of the catalog are mounted.

    `internal_url`: for calls between services, if it is another one. `compute_url`: of the Compute API, if it is not mounted on
    that server. `transport`: for calls to Compute, for example without a socket; None for its own sessions.
    """

    state_dir: Path
    base_url: str
    region: str = "RegionOne"
    compute_url: str | None = None
    internal_url: str | None = None
    transport: requests.Session | None = None
