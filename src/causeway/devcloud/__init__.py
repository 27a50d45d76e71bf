"""devcloud: the services around Compute, small enough to run beside it.

It serves, over HTTP and on the public APIs' own paths and bodies, as much of Identity v3, Image v2, Network v2.0 and
Block Storage v3 as `openstack` and Causeway's services use. State is one SQLite file, images and volumes are real bytes
in files below one directory; a restart on the same directory finds everything again. Services never import this
package, they reach it by URL.

Where to look: `app` puts the parts together and `bootstrap` makes what it starts with. Each service is a package with a
`routes` module that lists its whole API, and a module for each family of resources; `web` turns a route table into an app.
Handlers work with a `cloud`, which has all that the services share: the `store` with its `tables`, what says who calls
(`access`), threads behind the requests (`background`), the `switches` of tests. Nothing imports from above: the contract in
`pyproject.toml` has the order, and a new module needs a place in it.
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
