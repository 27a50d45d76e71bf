"""Policies of the services around, for the account of hosts, which is no administrator: docs/deployment.md has the same lines.

Its roles are ``service``, which is enough for Placement and most of Neutron, and ``compute_host``, which only these files know:
Glance and Cinder show things of other projects to whom they take for an administrator only.
"""

from __future__ import annotations

import yaml

ROLE = "compute_host"
_MEMBER = "(role:member and project_id:%(project_id)s)"
_READER = "(role:reader and project_id:%(project_id)s)"
_ADMIN_OR_HOST = f"role:admin or role:{ROLE}"

GLANCE = {
    "context_is_admin": _ADMIN_OR_HOST,
    # Whatever hosts do not need of what an administrator may do.
    **dict.fromkeys(("delete_image", "modify_image"), f"role:admin or {_MEMBER}"),
    "add_image": f"role:admin or ({_MEMBER} and project_id:%(owner)s)",
    **dict.fromkeys(
        (
            "publicize_image",
            "communitize_image",
            "deactivate",
            "reactivate",
            "set_image_location",
            "delete_image_location",
        ),
        "role:admin",
    ),
    **dict.fromkeys(("add_member", "delete_member"), f"role:admin or {_MEMBER}"),
    "modify_member": "role:admin or (role:member and project_id:%(member_id)s)",
    **dict.fromkeys(("cache_image", "cache_list", "cache_delete", "stores_info_detail", "copy_image"), "role:admin"),
}
CINDER = {
    "context_is_admin": _ADMIN_OR_HOST,
    "admin_api": "role:admin",
    "admin_or_owner": "role:admin or project_id:%(project_id)s",
    "volume:get": f"{_ADMIN_OR_HOST} or {_READER}",
    **dict.fromkeys(("volume:attachment_update", "volume:attachment_complete"), f"{_ADMIN_OR_HOST} or {_MEMBER}"),
}
NEUTRON = {
    "get_floatingip": f"role:admin or role:service or {_READER}",
    "get_security_group": f"role:admin or role:service or rule:shared_security_group or {_READER}",
}
POLICIES = {"glance": GLANCE, "cinder": CINDER, "neutron": NEUTRON}


def render(service: str) -> str:
    """A service's policy.yaml."""
    return yaml.safe_dump(POLICIES[service])
