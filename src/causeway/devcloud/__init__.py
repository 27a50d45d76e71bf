"""devcloud: the services that Compute needs, small enough to run beside it.

It serves the parts of Identity v3, Image v2, Network v2.0 and Block Storage v3 that `openstack` and Causeway's services use,
over HTTP, with the paths and bodies of the public APIs. Its state is one SQLite file, and real images and volumes in files
below one directory; a restart on the same directory finds everything again. Services never import this package: they reach it
by URL.

What is where: `app` assembles the parts, and `bootstrap` makes the first accounts and the catalog. Each service is a package
with a `routes` module that lists its whole API, and a module for each family of resources; `web` turns a route table into an
app. Handlers use a `cloud`, which has what the services share: the `store` with its `tables`, authentication (`access`),
threads behind the requests (`background`), and the `switches` of tests. A module imports only from those below it: the contract
in `pyproject.toml` has the order, and a new module needs a place in it.
"""

from causeway.devcloud.app import Devcloud
from causeway.devcloud.bootstrap import Account, Accounts
from causeway.devcloud.config import DevcloudConfig
from causeway.devcloud.faults import Fault, Faults
from causeway.devcloud.network.topology import NetworkTopology, PortTopology, SubnetTopology

__all__ = [
    "Account",
    "Accounts",
    "Devcloud",
    "DevcloudConfig",
    "Fault",
    "Faults",
    "NetworkTopology",
    "PortTopology",
    "SubnetTopology",
]
