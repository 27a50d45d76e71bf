"""The files of a config drive (label ``config-2``), in the layout that cloud-init and others read."""

from __future__ import annotations

import json

from causeway.guest_data import ec2, openstack, versions
from causeway.guest_data.facts import ServerFacts


def files(facts: ServerFacts) -> dict[str, bytes]:
    """Returns name -> content. Of the EC2 versions it has only the newest, as in Nova by default."""
    found: dict[str, bytes] = {}
    for folder in (versions.EC2[-1], versions.LATEST):
        tree = ec2.tree(facts, versions.EC2[-1])
        found[f"ec2/{folder}/meta-data.json"] = json.dumps(tree["meta-data"], sort_keys=True).encode()
        if "user-data" in tree:
            found[f"ec2/{folder}/user-data"] = tree["user-data"]
    for folder in (*versions.OPENSTACK, versions.LATEST):
        version = versions.openstack_version(folder) or versions.OPENSTACK[-1]
        for name in openstack.names(facts, version):
            content = openstack.read(facts, version, name)
            if content is not None:
                found[f"openstack/{folder}/{name}"] = content
    found |= {f"openstack/content/{name}": content for name, content in facts.contents.items()}
    return found
