"""Who may do what: every rule with its default, and the enforcer.

The names and defaults are Nova's (Compute API policy reference); rules that Nova does not have begin with ``causeway:``. An
operator overrides them in ``[oslo_policy] policy_file``; oslo.policy reads the file again when it changes.
``oslopolicy-sample-generator --namespace causeway`` prints all rules.

All rules are of project scope: tokens of the whole system or of a domain are refused, unless ``enforce_scope`` is off. With
``enforce_new_defaults`` off, the defaults from before the roles reader, member, manager and service hold too (`_FORMER`):
everybody in the project may do what readers and members may do, and administrators may do the rest.

A rule is one line in `_RULES`: name, default, what it allows, and the operations it guards. What the API asks for is found in
its code by `tests/unit/api/test_rules_in_use.py`, which compares it with these lines.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from functools import cache
from typing import Any

from oslo_config import cfg
from oslo_policy import opts as policy_opts
from oslo_policy import policy

from causeway import errors, policy_files
from causeway.context import RequestContext
from causeway.policy_decisions import Decisions

LOG = logging.getLogger(__name__)

NOBODY = "!"
EVERYBODY = "@"
ADMIN = "rule:context_is_admin"
MANAGER = "rule:project_manager_or_admin"
MEMBER = "rule:project_member_or_admin"
READER = "rule:project_reader_or_admin"
SERVICE = "rule:service_or_admin"
OWN_KEYS = "rule:context_is_admin or user_id:%(user_id)s"

CROSS_CELL_RESIZE = "compute:servers:resize:cross_cell"
CROSS_CELL_LIVE = "causeway:servers:migrate_live:cross_cell"
CROSS_CELL_UNSHELVE = "causeway:servers:unshelve:cross_cell"

_BASE = [
    ("context_is_admin", "role:admin", "Who is an administrator."),
    ("project_manager_api", "role:manager and project_id:%(project_id)s", "Managers of the project."),
    ("project_member_api", "role:member and project_id:%(project_id)s", "Members of the project."),
    ("project_reader_api", "role:reader and project_id:%(project_id)s", "Readers of the project."),
    ("service_api", "role:service", "Services."),
    ("project_manager_or_admin", "rule:project_manager_api or rule:context_is_admin", "Managers and administrators."),
    ("project_member_or_admin", "rule:project_member_api or rule:context_is_admin", "Members and administrators."),
    ("project_reader_or_admin", "rule:project_reader_api or rule:context_is_admin", "Readers and administrators."),
    ("service_or_admin", "rule:service_api or rule:context_is_admin", "Services and administrators."),
    ("admin_or_owner", "is_admin:True or project_id:%(project_id)s", "Old name, for policy files that use it."),
    ("admin_api", "is_admin:True", "Old name, for policy files that use it."),
]

# (name, default, description, operations). Names without "compute:", "network:" or "causeway:" get the prefix "os_compute_api:".
_RULES: list[tuple[str, str, str, str]] = [
    (
        CROSS_CELL_RESIZE,
        NOBODY,
        "Resize or cold migrate a server to a host of another cell. Others get a host of the same cell, or none. "
        "The target has the project and the user of the server.",
        "POST /servers/{server_id}/action (resize), POST /servers/{server_id}/action (migrate)",
    ),
    (
        CROSS_CELL_LIVE,
        NOBODY,
        "Live-migrate a server to a host of another cell, or to any cell if there is no host in its own. Its guest stands still "
        "while its memory travels, and does not boot. The target has the project and the user of the server.",
        "POST /servers/{server_id}/action (os-migrateLive)",
    ),
    (
        CROSS_CELL_UNSHELVE,
        NOBODY,
        "Unshelve a server that is offloaded on a host of another cell: one that is named, or any if there is none in its own. "
        "The target has the project and the user of the server.",
        "POST /servers/{server_id}/action (unshelve)",
    ),
    # Servers
    ("servers:index", READER, "List servers", "GET /servers"),
    ("servers:detail", READER, "List servers with details", "GET /servers/detail"),
    ("servers:index:get_all_tenants", ADMIN, "List servers of all projects", "GET /servers"),
    ("servers:detail:get_all_tenants", ADMIN, "List servers of all projects with details", "GET /servers/detail"),
    ("servers:allow_all_filters", ADMIN, "Use every filter when listing servers", "GET /servers, GET /servers/detail"),
    ("servers:show", READER, "Show a server", "GET /servers/{server_id}"),
    ("servers:show:flavor-extra-specs", READER, "See the extra specs of a server's flavor", "GET /servers/{server_id}"),
    ("servers:show:host_status", ADMIN, "See the status of a server's host", "GET /servers/{server_id}"),
    ("servers:show:host_status:unknown-only", ADMIN, "See it only if UNKNOWN", "GET /servers/{server_id}"),
    ("servers:create", MEMBER, "Create a server", "POST /servers"),
    ("servers:create:forced_host", ADMIN, "Create a server on a host, past the scheduler", "POST /servers"),
    ("compute:servers:create:requested_destination", ADMIN, "Create a server on a host", "POST /servers"),
    ("servers:create:attach_volume", MEMBER, "Create a server with volumes", "POST /servers"),
    ("servers:create:attach_network", MEMBER, "Create a server with networks", "POST /servers"),
    ("servers:create:trusted_certs", MEMBER, "Create a server with trusted certificates", "POST /servers"),
    ("servers:create:zero_disk_flavor", ADMIN, "Create a server from an image on a flavor without disk", "POST /servers"),
    ("network:attach_external_network", ADMIN, "Give a server a port on an external network", "POST /servers"),
    ("servers:delete", MEMBER, "Delete a server", "DELETE /servers/{server_id}"),
    ("servers:update", MEMBER, "Update a server", "PUT /servers/{server_id}"),
    ("servers:confirm_resize", MEMBER, "Confirm a resize", "POST /servers/{server_id}/action (confirmResize)"),
    ("servers:revert_resize", MEMBER, "Revert a resize", "POST /servers/{server_id}/action (revertResize)"),
    ("servers:resize", MEMBER, "Resize a server", "POST /servers/{server_id}/action (resize)"),
    ("servers:reboot", MEMBER, "Reboot a server", "POST /servers/{server_id}/action (reboot)"),
    ("servers:rebuild", MEMBER, "Rebuild a server", "POST /servers/{server_id}/action (rebuild)"),
    ("servers:rebuild:trusted_certs", MEMBER, "Rebuild with certificates", "POST /servers/{server_id}/action (rebuild)"),
    ("servers:create_image", MEMBER, "Create an image of a server", "POST /servers/{server_id}/action (createImage)"),
    (
        "servers:create_image:allow_volume_backed",
        MEMBER,
        "Create an image of a volume-backed server",
        "POST /servers/{server_id}/action (createImage)",
    ),
    ("servers:start", MEMBER, "Start a server", "POST /servers/{server_id}/action (os-start)"),
    ("servers:stop", MEMBER, "Stop a server", "POST /servers/{server_id}/action (os-stop)"),
    ("servers:trigger_crash_dump", MEMBER, "Trigger a crash dump", "POST /servers/{server_id}/action (trigger_crash_dump)"),
    ("os-migrate-server:migrate", MANAGER, "Cold migrate a server", "POST /servers/{server_id}/action (migrate)"),
    ("os-migrate-server:migrate:host", ADMIN, "Migrate to a host", "POST /servers/{server_id}/action (migrate)"),
    ("os-migrate-server:migrate_live", MANAGER, "Live migrate", "POST /servers/{server_id}/action (os-migrateLive)"),
    ("os-migrate-server:migrate_live:host", ADMIN, "Live migrate to a host",
     "POST /servers/{server_id}/action (os-migrateLive)"),
    ("os-admin-actions:reset_state", ADMIN, "Reset a server's state", "POST /servers/{server_id}/action (os-resetState)"),
    ("os-admin-actions:inject_network_info", ADMIN, "Inject network info",
     "POST /servers/{server_id}/action (injectNetworkInfo)"),
    ("os-lock-server:lock", MEMBER, "Lock a server", "POST /servers/{server_id}/action (lock)"),
    ("os-lock-server:unlock", MEMBER, "Unlock a server", "POST /servers/{server_id}/action (unlock)"),
    ("os-lock-server:unlock:unlock_override", ADMIN, "Unlock what an administrator locked",
     "POST /servers/{server_id}/action (unlock)"),
    ("os-console-output", MEMBER, "Read a server's console", "POST /servers/{server_id}/action (os-getConsoleOutput)"),
    ("os-remote-consoles", MEMBER, "Open a remote console", "POST /servers/{server_id}/remote-consoles"),
    ("os-pause-server:pause", MEMBER, "Pause a server", "POST /servers/{server_id}/action (pause)"),
    ("os-pause-server:unpause", MEMBER, "Unpause a server", "POST /servers/{server_id}/action (unpause)"),
    ("os-suspend-server:suspend", MEMBER, "Suspend a server", "POST /servers/{server_id}/action (suspend)"),
    ("os-suspend-server:resume", MEMBER, "Resume a server", "POST /servers/{server_id}/action (resume)"),
    ("os-shelve:shelve", MEMBER, "Shelve a server", "POST /servers/{server_id}/action (shelve)"),
    ("os-shelve:unshelve", MEMBER, "Unshelve a server", "POST /servers/{server_id}/action (unshelve)"),
    ("os-shelve:unshelve_to_host", ADMIN, "Unshelve to a host", "POST /servers/{server_id}/action (unshelve)"),
    ("os-shelve:shelve_offload", ADMIN, "Offload a shelved server", "POST /servers/{server_id}/action (shelveOffload)"),
    ("os-rescue", MEMBER, "Rescue a server", "POST /servers/{server_id}/action (rescue)"),
    ("os-unrescue", MEMBER, "Unrescue a server", "POST /servers/{server_id}/action (unrescue)"),
    ("os-admin-password", MEMBER, "Change a password", "POST /servers/{server_id}/action (changePassword)"),
    ("os-multinic:add", MEMBER, "Give a server one more fixed IP", "POST /servers/{server_id}/action (addFixedIp)"),
    ("os-multinic:remove", MEMBER, "Remove a fixed IP", "POST /servers/{server_id}/action (removeFixedIp)"),
    ("os-create-backup", MEMBER, "Back up a server", "POST /servers/{server_id}/action (createBackup)"),
    ("os-evacuate", ADMIN, "Evacuate a server", "POST /servers/{server_id}/action (evacuate)"),
    ("os-deferred-delete:restore", MEMBER, "Restore a deleted server", "POST /servers/{server_id}/action (restore)"),
    ("os-deferred-delete:force", MEMBER, "Delete at once", "POST /servers/{server_id}/action (forceDelete)"),
    ("os-extended-server-attributes", ADMIN, "See host, node and other inner attributes",
     "GET /servers/{server_id}, GET /servers/detail"),
    ("os-server-diagnostics", ADMIN, "Show diagnostics", "GET /servers/{server_id}/diagnostics"),
    ("compute:server:topology:index", READER, "Show NUMA topology", "GET /servers/{server_id}/topology"),
    ("compute:server:topology:host:index", ADMIN, "Show host NUMA topology", "GET /servers/{server_id}/topology"),
    ("ips:index", READER, "List addresses", "GET /servers/{server_id}/ips"),
    ("ips:show", READER, "Show addresses of a network", "GET /servers/{server_id}/ips/{network_label}"),
    ("os-server-password:show", READER, "Show the password", "GET /servers/{server_id}/os-server-password"),
    ("os-server-password:clear", MEMBER, "Clear the password", "DELETE /servers/{server_id}/os-server-password"),
    ("os-server-shares:index", READER, "List shares", "GET /servers/{server_id}/shares"),
    ("os-server-shares:show", READER, "Show a share", "GET /servers/{server_id}/shares/{share_id}"),
    ("os-server-shares:create", MEMBER, "Attach a share", "POST /servers/{server_id}/shares"),
    ("os-server-shares:delete", MEMBER, "Detach a share", "DELETE /servers/{server_id}/shares/{share_id}"),
    # What belongs to servers
    ("server-metadata:index", READER, "List metadata", "GET /servers/{server_id}/metadata"),
    ("server-metadata:show", READER, "Show a metadata item", "GET /servers/{server_id}/metadata/{key}"),
    ("server-metadata:create", MEMBER, "Create metadata", "POST /servers/{server_id}/metadata"),
    ("server-metadata:update", MEMBER, "Set a metadata item", "PUT /servers/{server_id}/metadata/{key}"),
    ("server-metadata:update_all", MEMBER, "Replace metadata", "PUT /servers/{server_id}/metadata"),
    ("server-metadata:delete", MEMBER, "Delete a metadata item", "DELETE /servers/{server_id}/metadata/{key}"),
    ("os-server-tags:index", READER, "List tags", "GET /servers/{server_id}/tags"),
    ("os-server-tags:show", READER, "Check a tag", "GET /servers/{server_id}/tags/{tag}"),
    ("os-server-tags:update", MEMBER, "Add a tag", "PUT /servers/{server_id}/tags/{tag}"),
    ("os-server-tags:update_all", MEMBER, "Replace tags", "PUT /servers/{server_id}/tags"),
    ("os-server-tags:delete", MEMBER, "Delete a tag", "DELETE /servers/{server_id}/tags/{tag}"),
    ("os-server-tags:delete_all", MEMBER, "Delete all tags", "DELETE /servers/{server_id}/tags"),
    ("os-volumes-attachments:index", READER, "List volume attachments", "GET /servers/{server_id}/os-volume_attachments"),
    ("os-volumes-attachments:show", READER, "Show an attachment",
     "GET /servers/{server_id}/os-volume_attachments/{volume_id}"),
    ("os-volumes-attachments:create", MEMBER, "Attach a volume", "POST /servers/{server_id}/os-volume_attachments"),
    ("os-volumes-attachments:update", MEMBER, "Change an attachment",
     "PUT /servers/{server_id}/os-volume_attachments/{volume_id}"),
    ("os-volumes-attachments:swap", SERVICE, "Swap a volume", "PUT /servers/{server_id}/os-volume_attachments/{volume_id}"),
    ("os-volumes-attachments:delete", MEMBER, "Detach a volume",
     "DELETE /servers/{server_id}/os-volume_attachments/{volume_id}"),
    ("os-attach-interfaces:list", READER, "List interfaces", "GET /servers/{server_id}/os-interface"),
    ("os-attach-interfaces:show", READER, "Show an interface", "GET /servers/{server_id}/os-interface/{port_id}"),
    ("os-attach-interfaces:create", MEMBER, "Attach an interface", "POST /servers/{server_id}/os-interface"),
    ("os-attach-interfaces:delete", MEMBER, "Detach an interface", "DELETE /servers/{server_id}/os-interface/{port_id}"),
    ("os-instance-actions:list", READER, "List actions", "GET /servers/{server_id}/os-instance-actions"),
    ("os-instance-actions:show", READER, "Show an action", "GET /servers/{server_id}/os-instance-actions/{request_id}"),
    ("os-instance-actions:events", ADMIN, "See an action's events before 2.51, tracebacks and hosts",
     "GET /servers/{server_id}/os-instance-actions/{request_id}"),
    ("os-instance-actions:events:details", ADMIN, "See why an event failed",
     "GET /servers/{server_id}/os-instance-actions/{request_id}"),
    ("os-server-external-events:create", SERVICE, "Send events to servers", "POST /os-server-external-events"),
    # Migrations
    ("os-migrations:index", MANAGER, "List migrations", "GET /os-migrations"),
    ("os-migrations:index:all_projects", ADMIN, "List migrations of all projects", "GET /os-migrations"),
    ("os-migrations:index:host", ADMIN, "See hosts of migrations", "GET /os-migrations"),
    ("servers:migrations:index", MANAGER, "List a server's moves that are under way", "GET /servers/{server_id}/migrations"),
    ("servers:migrations:index:host", ADMIN, "See hosts of a server's migrations", "GET /servers/{server_id}/migrations"),
    ("servers:migrations:show", ADMIN, "Show one of a server's moves that are under way",
     "GET /servers/{server_id}/migrations/{migration_id}"),
    ("servers:migrations:force_complete", MANAGER, "Force a live migration",
     "POST /servers/{server_id}/migrations/{migration_id}/action"),
    ("servers:migrations:delete", MANAGER, "Cancel a resize or migration that has not passed its pivot",
     "DELETE /servers/{server_id}/migrations/{migration_id}"),
    # Flavors
    ("os-flavor-manage:create", ADMIN, "Create a flavor", "POST /flavors"),
    ("os-flavor-manage:update", ADMIN, "Update a flavor", "PUT /flavors/{flavor_id}"),
    ("os-flavor-manage:delete", ADMIN, "Delete a flavor", "DELETE /flavors/{flavor_id}"),
    ("os-flavor-access", ADMIN, "See who has access to a flavor", "GET /flavors/{flavor_id}/os-flavor-access"),
    ("os-flavor-access:add_tenant_access", ADMIN, "Give a project access",
     "POST /flavors/{flavor_id}/action (addTenantAccess)"),
    ("os-flavor-access:remove_tenant_access", ADMIN, "Remove access",
     "POST /flavors/{flavor_id}/action (removeTenantAccess)"),
    ("os-flavor-extra-specs:index", READER, "List extra specs", "GET /flavors/{flavor_id}/os-extra_specs"),
    ("os-flavor-extra-specs:show", READER, "Show an extra spec", "GET /flavors/{flavor_id}/os-extra_specs/{key}"),
    ("os-flavor-extra-specs:create", ADMIN, "Set extra specs", "POST /flavors/{flavor_id}/os-extra_specs"),
    ("os-flavor-extra-specs:update", ADMIN, "Set an extra spec", "PUT /flavors/{flavor_id}/os-extra_specs/{key}"),
    ("os-flavor-extra-specs:delete", ADMIN, "Delete an extra spec", "DELETE /flavors/{flavor_id}/os-extra_specs/{key}"),
    # Key pairs, groups
    ("os-keypairs:index", OWN_KEYS, "List key pairs", "GET /os-keypairs"),
    ("os-keypairs:show", OWN_KEYS, "Show a key pair", "GET /os-keypairs/{keypair_name}"),
    ("os-keypairs:create", OWN_KEYS, "Create a key pair", "POST /os-keypairs"),
    ("os-keypairs:delete", OWN_KEYS, "Delete a key pair", "DELETE /os-keypairs/{keypair_name}"),
    ("os-server-groups:index", READER, "List server groups", "GET /os-server-groups"),
    ("os-server-groups:index:all_projects", ADMIN, "List groups of all projects", "GET /os-server-groups"),
    ("os-server-groups:show", READER, "Show a server group", "GET /os-server-groups/{group_id}"),
    ("os-server-groups:create", MEMBER, "Create a server group", "POST /os-server-groups"),
    ("os-server-groups:delete", MEMBER, "Delete a server group", "DELETE /os-server-groups/{group_id}"),
    # Operators' resources
    ("os-aggregates:index", ADMIN, "List aggregates", "GET /os-aggregates"),
    ("os-aggregates:show", ADMIN, "Show an aggregate", "GET /os-aggregates/{aggregate_id}"),
    ("os-aggregates:create", ADMIN, "Create an aggregate", "POST /os-aggregates"),
    ("os-aggregates:update", ADMIN, "Update an aggregate", "PUT /os-aggregates/{aggregate_id}"),
    ("os-aggregates:delete", ADMIN, "Delete an aggregate", "DELETE /os-aggregates/{aggregate_id}"),
    ("os-aggregates:add_host", ADMIN, "Add a host", "POST /os-aggregates/{aggregate_id}/action (add_host)"),
    ("os-aggregates:remove_host", ADMIN, "Remove a host", "POST /os-aggregates/{aggregate_id}/action (remove_host)"),
    ("os-aggregates:set_metadata", ADMIN, "Set metadata", "POST /os-aggregates/{aggregate_id}/action (set_metadata)"),
    ("compute:aggregates:images", ADMIN, "Cache images on the hosts", "POST /os-aggregates/{aggregate_id}/images"),
    ("os-availability-zone:list", EVERYBODY, "List availability zones", "GET /os-availability-zone"),
    ("os-availability-zone:detail", ADMIN, "List zones with hosts", "GET /os-availability-zone/detail"),
    ("os-services:list", ADMIN, "List services", "GET /os-services"),
    ("os-services:update", ADMIN, "Update a service", "PUT /os-services/{service_id}"),
    ("os-services:delete", ADMIN, "Delete a service", "DELETE /os-services/{service_id}"),
    ("os-hypervisors:list", ADMIN, "List hypervisors", "GET /os-hypervisors"),
    ("os-hypervisors:list-detail", ADMIN, "List hypervisors with details", "GET /os-hypervisors/detail"),
    ("os-hypervisors:statistics", ADMIN, "Show statistics", "GET /os-hypervisors/statistics"),
    ("os-hypervisors:show", ADMIN, "Show a hypervisor", "GET /os-hypervisors/{hypervisor_id}"),
    ("os-hypervisors:uptime", ADMIN, "Show uptime", "GET /os-hypervisors/{hypervisor_id}/uptime"),
    ("os-hypervisors:search", ADMIN, "Search hypervisors", "GET /os-hypervisors/{hypervisor_id}/search"),
    ("os-hypervisors:servers", ADMIN, "List servers of hypervisors", "GET /os-hypervisors/{hypervisor_id}/servers"),
    # Limits and usage
    ("limits", EVERYBODY, "Show limits", "GET /limits"),
    ("limits:other_project", ADMIN, "Show limits of another project", "GET /limits"),
    ("os-quota-sets:show", READER, "Show a quota", "GET /os-quota-sets/{tenant_id}"),
    ("os-quota-sets:detail", READER, "Show a quota with usage", "GET /os-quota-sets/{tenant_id}/detail"),
    ("os-quota-sets:defaults", EVERYBODY, "Show default quotas", "GET /os-quota-sets/{tenant_id}/defaults"),
    ("os-quota-sets:update", ADMIN, "Update a quota", "PUT /os-quota-sets/{tenant_id}"),
    ("os-quota-sets:delete", ADMIN, "Reset a quota", "DELETE /os-quota-sets/{tenant_id}"),
    ("os-quota-class-sets:show", ADMIN, "Show a quota class", "GET /os-quota-class-sets/{quota_class}"),
    ("os-quota-class-sets:update", ADMIN, "Update a quota class", "PUT /os-quota-class-sets/{quota_class}"),
    ("os-simple-tenant-usage:list", ADMIN, "List usage of all projects", "GET /os-simple-tenant-usage"),
    ("os-simple-tenant-usage:show", READER, "Show usage of a project", "GET /os-simple-tenant-usage/{tenant_id}"),
    ("causeway:move_candidates", ADMIN, "Explain where a server could be moved to, and why not",
     "GET /os-causeway/servers/{server_id}/move-candidates"),
    ("causeway:operations:index", ADMIN, "List the operations of all servers", "GET /os-causeway/operations"),
    ("causeway:operations:show", ADMIN, "Show an operation, or wait until there is something new",
     "GET /os-causeway/operations/{operation_id}"),
    ("causeway:operations:cancel", ADMIN, "Cancel an operation", "DELETE /os-causeway/operations/{operation_id}"),
    ("causeway:servers:operations:index", ADMIN, "List a server's operations", "GET /os-causeway/servers/{server_id}/operations"),
    ("causeway:audit", ADMIN, "Audit the cloud, and fix what is safe",
     "GET /os-causeway/audit, POST /os-causeway/audit, POST /os-causeway/audit/servers/{server_id}"),
    ("causeway:cleanups:index", ADMIN, "List what hosts are to clean when they come back", "GET /os-causeway/cleanups"),
    ("causeway:cells:index", ADMIN, "List cells with the numbers of their hosts and servers", "GET /os-causeway/cells"),
    ("causeway:cells:show", ADMIN, "Show a cell and its hosts",
     "GET /os-causeway/cells/{cell}, GET /os-causeway/cells/{cell}/hosts"),
    ("causeway:adoption", ADMIN, "Show how far the cloud is taken over from Nova", "GET /os-causeway/adoption"),
    ("causeway:servers:guest_trim", MEMBER, "Have a guest's agent return unused blocks of its file systems to the disks",
     "POST /servers/{server_id}/action (os-guestTrim)"),
    ("causeway:servers:hold", MEMBER,
     "Ask (by causeway:hold in its metadata) that a server is not moved by a drain before a moment, or lift that",
     "POST /servers, POST /servers/{server_id}/metadata, PUT /servers/{server_id}/metadata, "
     "PUT /servers/{server_id}/metadata/{key}, DELETE /servers/{server_id}/metadata/{key}, "
     "POST /servers/{server_id}/action (rebuild)"),
    ("causeway:drains:index", ADMIN, "List drains", "GET /os-causeway/drains"),
    ("causeway:drains:show", ADMIN, "Show a drain and its servers",
     "GET /os-causeway/drains/{drain_id}, GET /os-causeway/drains/{drain_id}/servers"),
    ("causeway:drains:create", ADMIN, "Plan a drain, as a dry run or to be started",
     "POST /os-causeway/drains, POST /os-causeway/drains/plan"),
    ("causeway:drains:update", ADMIN, "Change a drain's limits", "PUT /os-causeway/drains/{drain_id}"),
    ("causeway:drains:action", ADMIN, "Start, pause, resume, cancel or roll back a drain",
     "POST /os-causeway/drains/{drain_id}/action"),
    ("causeway:drains:delete", ADMIN, "Delete the record of a drain that has ended", "DELETE /os-causeway/drains/{drain_id}"),
    ("extensions", EVERYBODY, "List extensions", "GET /extensions, GET /extensions/{alias}"),
    ("os-console-auth-tokens", ADMIN, "Show a console's connection", "GET /os-console-auth-tokens/{console_token}"),
    ("os-hosts:list", ADMIN, "List hosts", "GET /os-hosts"),
    ("os-hosts:show", ADMIN, "Show a host", "GET /os-hosts/{host}"),
    ("os-hosts:update", ADMIN, "Enable or disable a host", "PUT /os-hosts/{host}"),
    ("os-hosts:start", ADMIN, "Start a host", "GET /os-hosts/{host}/startup"),
    ("os-hosts:shutdown", ADMIN, "Shut a host down", "GET /os-hosts/{host}/shutdown"),
    ("os-hosts:reboot", ADMIN, "Reboot a host", "GET /os-hosts/{host}/reboot"),
    ("os-instance-usage-audit-log:list", ADMIN, "List usage audits", "GET /os-instance_usage_audit_log"),
    ("os-instance-usage-audit-log:show", ADMIN, "Show usage audits", "GET /os-instance_usage_audit_log/{before}"),
    # Passed on to other services, until 2.35
    ("os-baremetal-nodes:list", ADMIN, "List bare metal nodes", "GET /os-baremetal-nodes"),
    ("os-baremetal-nodes:show", ADMIN, "Show a bare metal node", "GET /os-baremetal-nodes/{node_id}"),
    ("os-networks:list", READER, "List networks", "GET /os-networks"),
    ("os-networks:show", READER, "Show a network", "GET /os-networks/{network_id}"),
    ("os-tenant-networks:list", READER, "List networks", "GET /os-tenant-networks"),
    ("os-tenant-networks:show", READER, "Show a network", "GET /os-tenant-networks/{network_id}"),
    ("os-floating-ip-pools", EVERYBODY, "List external networks", "GET /os-floating-ip-pools"),
    ("os-floating-ips:list", READER, "List floating IPs", "GET /os-floating-ips"),
    ("os-floating-ips:show", READER, "Show a floating IP", "GET /os-floating-ips/{floating_ip_id}"),
    ("os-floating-ips:create", MEMBER, "Make a floating IP", "POST /os-floating-ips"),
    ("os-floating-ips:delete", MEMBER, "Delete a floating IP", "DELETE /os-floating-ips/{floating_ip_id}"),
    ("os-floating-ips:add", MEMBER, "Give a server a floating IP", "POST /servers/{server_id}/action (addFloatingIp)"),
    ("os-floating-ips:remove", MEMBER, "Remove a floating IP",
     "POST /servers/{server_id}/action (removeFloatingIp)"),
    ("os-security-groups:get", READER, "List security groups", "GET /os-security-groups"),
    ("os-security-groups:show", READER, "Show a security group", "GET /os-security-groups/{group_id}"),
    ("os-security-groups:create", MEMBER, "Make a security group", "POST /os-security-groups"),
    ("os-security-groups:update", MEMBER, "Change a security group", "PUT /os-security-groups/{group_id}"),
    ("os-security-groups:delete", MEMBER, "Delete a security group", "DELETE /os-security-groups/{group_id}"),
    ("os-security-groups:list", READER, "List a server's groups", "GET /servers/{server_id}/os-security-groups"),
    ("os-security-groups:add", MEMBER, "Add a group", "POST /servers/{server_id}/action (addSecurityGroup)"),
    ("os-security-groups:remove", MEMBER, "Remove a group", "POST /servers/{server_id}/action (removeSecurityGroup)"),
    ("os-security-groups:rule:create", MEMBER, "Make a rule", "POST /os-security-group-rules"),
    ("os-security-groups:rule:delete", MEMBER, "Delete a rule", "DELETE /os-security-group-rules/{rule_id}"),
    ("os-volumes:list", READER, "List volumes", "GET /os-volumes"),
    ("os-volumes:detail", READER, "List volumes with details", "GET /os-volumes/detail"),
    ("os-volumes:show", READER, "Show a volume", "GET /os-volumes/{volume_id}"),
    ("os-volumes:create", MEMBER, "Make a volume", "POST /os-volumes"),
    ("os-volumes:delete", MEMBER, "Delete a volume", "DELETE /os-volumes/{volume_id}"),
    ("os-volumes:snapshots:list", READER, "List snapshots", "GET /os-snapshots"),
    ("os-volumes:snapshots:detail", READER, "List snapshots with details", "GET /os-snapshots/detail"),
    ("os-volumes:snapshots:show", READER, "Show a snapshot", "GET /os-snapshots/{snapshot_id}"),
    ("os-volumes:snapshots:create", MEMBER, "Make a snapshot", "POST /os-snapshots"),
    ("os-volumes:snapshots:delete", MEMBER, "Delete a snapshot", "DELETE /os-snapshots/{snapshot_id}"),
    ("os-assisted-volume-snapshots:create", SERVICE, "Create an assisted snapshot", "POST /os-assisted-volume-snapshots"),
    ("os-assisted-volume-snapshots:delete", SERVICE, "Delete an assisted snapshot",
     "DELETE /os-assisted-volume-snapshots/{snapshot_id}"),
]  # fmt: skip


def _full_name(name: str) -> str:
    return name if name.startswith(("compute:", "network:", "causeway:")) else f"os_compute_api:{name}"


def _operations(text: str) -> list[dict[str, str]]:
    return [dict(zip(("method", "path"), one.split(" ", 1), strict=True)) for one in text.split(", ")]


# A default -> what it was before these roles; rules of newer APIs never had another default.
_FORMER = {
    READER: "rule:admin_or_owner",
    MEMBER: "rule:admin_or_owner",
    MANAGER: "rule:admin_api",
    SERVICE: "rule:admin_api",
}
_WITHOUT_FORMER = ("os-server-shares:", "causeway:")

# A rule -> its name in an earlier release, and which release has the new one. Files that have the old name count as before.
_RENAMED = {
    CROSS_CELL_LIVE: ("compute:servers:migrate_live:cross_cell", "0.2.0"),
    CROSS_CELL_UNSHELVE: ("compute:servers:unshelve:cross_cell", "0.2.0"),
    "causeway:cleanups:index": ("causeway:leftovers:index", "0.2.0"),
}


def _former(name: str, check: str) -> policy.DeprecatedRule | None:
    if name in _RENAMED:
        old, since = _RENAMED[name]
        return policy.DeprecatedRule(
            old,
            check,
            deprecated_reason="Rules of ours begin with causeway: and have the words of the glossary.",
            deprecated_since=since,
        )
    if check not in _FORMER or name.startswith(_WITHOUT_FORMER):
        return None
    return policy.DeprecatedRule(
        _full_name(name),
        _FORMER[check],
        deprecated_reason="The roles reader, member, manager and service say who may do it.",
        deprecated_since="21.0.0",
    )


def list_rules() -> list[policy.RuleDefault]:
    """Every rule; the entry point of oslo.policy's generators."""
    return list(_rules())


@cache
def _rules() -> tuple[policy.RuleDefault, ...]:
    base = [policy.RuleDefault(name, check, description) for name, check, description in _BASE]
    documented = [
        policy.DocumentedRuleDefault(
            _full_name(name),
            check,
            description,
            _operations(operations),
            scope_types=["project"],
            deprecated_rule=_former(name, check),
        )
        for name, check, description, operations in _RULES
    ]
    return (*base, *documented)


def unknown_rules(conf: cfg.ConfigOpts) -> list[str]:
    """Returns the rules in the policy files that are none, as `policy_files.unknown` does."""
    former = {rule.deprecated_rule.name for rule in _rules() if rule.deprecated_rule is not None}
    return policy_files.unknown(conf, former | {rule.name for rule in _rules()})


# oslo.policy 6 removed this option and always enforces scopes; existing nova.conf files may still switch that off.
ENFORCE_SCOPE = cfg.BoolOpt("enforce_scope", default=True, help="Whether tokens that are not of a project are refused.")

# How often the policy files are checked for changes, in seconds.
RELOAD_INTERVAL = 1.0


class Enforcer:
    """Answers "may this caller do that". Safe to use from many threads."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        """Raises Misconfigured if a policy file is broken. If one breaks later, the rules stay as they were."""
        policy_opts.set_defaults(conf)
        if ENFORCE_SCOPE.dest not in conf.oslo_policy:
            conf.register_opt(ENFORCE_SCOPE, group="oslo_policy")
        self._stamps = policy_files.stamps(conf)
        policy_files.check(conf)
        self._conf = conf
        self._reported = ""
        self._oslo = policy.Enforcer(conf)
        # Otherwise it logs a warning for each former default that is in force.
        self._oslo.suppress_default_change_warnings = True
        self._oslo.register_defaults(list_rules())
        self._oslo.load_rules()
        self._decisions = Decisions(self._oslo)
        self._reloading = threading.Lock()
        self._next_check = time.monotonic() + RELOAD_INTERVAL

    def authorize(self, context: RequestContext, rule: str, target: Mapping[str, Any] | None = None) -> None:
        """Raises Forbidden unless ``rule`` allows it on ``target`` (None: on what the caller and its project own)."""
        if not self.allows(context, rule, target):
            raise errors.Forbidden(f"Policy doesn't allow {rule} to be performed.")

    def allows(self, context: RequestContext, rule: str, target: Mapping[str, Any] | None = None) -> bool:
        """Whether ``rule`` allows it on ``target``. Raises KeyError if there is no such rule: that is a programming error."""
        if time.monotonic() >= self._next_check:
            self._reload_if_changed()
        if (context.system_scope or context.domain_id) and self._conf.oslo_policy.enforce_scope:
            return False
        credentials = _credentials(context)
        if target is None:
            target = {"project_id": context.project_id, "user_id": context.user_id}
        if rule not in self._oslo.registered_rules:
            raise KeyError(f"there is no policy rule {rule}")
        return self._decisions.of_rule(rule)(target, credentials)

    def _reload_if_changed(self) -> None:
        """Reads policy files that have changed. Until they are read, requests are answered by the rules as they were."""
        if not self._reloading.acquire(blocking=False):
            return
        try:
            self._next_check = time.monotonic() + RELOAD_INTERVAL
            if not self._files_are_valid():
                return
            self._oslo.load_rules()
            if not self._decisions.are_of(self._oslo.rules):
                self._decisions = Decisions(self._oslo)
        finally:
            self._reloading.release()

    def _files_are_valid(self) -> bool:
        """Whether the policy files are valid. What is wrong with them is logged once."""
        stamps = policy_files.stamps(self._conf)
        if stamps == self._stamps:
            return not self._reported
        self._stamps = stamps
        try:
            policy_files.check(self._conf)
        except errors.Misconfigured as broken:
            LOG.error("%s The rules that were read before stay in force.", broken.message)
            self._reported = broken.message
            return False
        self._reported = ""
        return True

    def text_of(self, rule: str) -> str:
        """Returns the check that a rule has now, in the syntax of policy files."""
        return str(self._oslo.rules[rule])

    def is_admin(self, context: RequestContext) -> bool:
        """Whether the caller is an administrator (rule ``context_is_admin``)."""
        return self.allows(context, "context_is_admin", {})


def _credentials(context: RequestContext) -> dict[str, Any]:
    """Returns the caller's values that checks compare with. They are stored in the context, since its rights rarely change."""
    found: dict[str, Any] | None = context.__dict__.get("_policy_credentials")
    if found is None or found["is_admin"] != context.is_admin or found["roles"] is not context.roles:
        found = dict(context.to_policy_values())
        found["is_admin"] = context.is_admin
        found["roles"] = context.roles
        context.__dict__["_policy_credentials"] = found
    return found
