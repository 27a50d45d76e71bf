"""The whole REST API. Paths are below ``/v2.1`` and ``/v2.1/{project_id}`` (and ``/v2``, the legacy endpoint).

A row: method, path, handler, the first and the last minor version that has it. ``action`` rows share a path and are
distinguished by the key of the body.
"""

from __future__ import annotations

from dataclasses import replace

from causeway.api import gone, version_documents
from causeway.api.dispatch import Route
from causeway.api.proxies.routes import ROUTES as PROXIES
from causeway.api.request import Handler
from causeway.api.resources import (
    adoption,
    aggregates,
    assisted_snapshots,
    audit,
    availability_zones,
    baremetal_nodes,
    cells,
    cleanups,
    compute_services,
    console_auth_tokens,
    drains,
    extensions,
    external_events,
    extra_specs,
    flavor_access,
    flavors,
    hypervisors,
    keypairs,
    limits,
    migrations,
    operations,
    os_hosts,
    quota_sets,
    server_groups,
    tenant_usage,
    usage_audit_log,
)
from causeway.api.servers.actions import live_migration
from causeway.api.servers.routes import ROUTES as SERVER_ROUTES
from causeway.api.unavailable import Unavailable


def _get(path: str, handler: Handler, first: int = 1, last: int | None = None) -> Route:
    return Route("GET", path, handler, first, last)


def _post(path: str, handler: Handler, first: int = 1, last: int | None = None) -> Route:
    return Route("POST", path, handler, first, last)


def _put(path: str, handler: Handler, first: int = 1, last: int | None = None) -> Route:
    return Route("PUT", path, handler, first, last)


def _delete(path: str, handler: Handler, first: int = 1, last: int | None = None) -> Route:
    return Route("DELETE", path, handler, first, last)


def _action(path: str, name: str, handler: Handler, first: int = 1, last: int | None = None) -> Route:
    return Route("POST", path, handler, first, last, action=name)


ROUTES: list[Route] = [
    # Servers and what belongs to them
    *SERVER_ROUTES,
    # Flavors
    _get("/flavors", flavors.index),
    _post("/flavors", flavors.create),
    _get("/flavors/detail", flavors.detail),
    _get("/flavors/{flavor_id}", flavors.show),
    _put("/flavors/{flavor_id}", flavors.update, 55),
    _delete("/flavors/{flavor_id}", flavors.delete),
    _get("/flavors/{flavor_id}/os-flavor-access", flavor_access.index),
    _action("/flavors/{flavor_id}/action", "addTenantAccess", flavor_access.add),
    _action("/flavors/{flavor_id}/action", "removeTenantAccess", flavor_access.remove),
    _get("/flavors/{flavor_id}/os-extra_specs", extra_specs.index),
    _post("/flavors/{flavor_id}/os-extra_specs", extra_specs.create),
    _get("/flavors/{flavor_id}/os-extra_specs/{key}", extra_specs.show),
    _put("/flavors/{flavor_id}/os-extra_specs/{key}", extra_specs.update),
    _delete("/flavors/{flavor_id}/os-extra_specs/{key}", extra_specs.delete),
    # Key pairs, server groups
    _get("/os-keypairs", keypairs.index),
    _post("/os-keypairs", keypairs.create),
    _get("/os-keypairs/{keypair_name}", keypairs.show),
    _delete("/os-keypairs/{keypair_name}", keypairs.delete),
    _get("/os-server-groups", server_groups.index),
    _post("/os-server-groups", server_groups.create),
    _get("/os-server-groups/{group_id}", server_groups.show),
    _delete("/os-server-groups/{group_id}", server_groups.delete),
    # Aggregates, zones
    _get("/os-aggregates", aggregates.index),
    _post("/os-aggregates", aggregates.create),
    _get("/os-aggregates/{aggregate_id}", aggregates.show),
    _put("/os-aggregates/{aggregate_id}", aggregates.update),
    _delete("/os-aggregates/{aggregate_id}", aggregates.delete),
    _action("/os-aggregates/{aggregate_id}/action", "add_host", aggregates.add_host),
    _action("/os-aggregates/{aggregate_id}/action", "remove_host", aggregates.remove_host),
    _action("/os-aggregates/{aggregate_id}/action", "set_metadata", aggregates.set_metadata),
    _post("/os-aggregates/{aggregate_id}/images", aggregates.cache_images, 81),
    _get("/os-availability-zone", availability_zones.index),
    _get("/os-availability-zone/detail", availability_zones.detail),
    # Services, hypervisors
    _get("/os-services", compute_services.index),
    _put("/os-services/enable", compute_services.enable, 1, 52),
    _put("/os-services/disable", compute_services.disable, 1, 52),
    _put("/os-services/disable-log-reason", compute_services.disable_with_reason, 1, 52),
    _put("/os-services/force-down", compute_services.force_down, 11, 52),
    _put("/os-services/{service_id}", compute_services.update, 53),
    _delete("/os-services/{service_id}", compute_services.delete),
    _get("/os-hypervisors", hypervisors.index),
    _get("/os-hypervisors/detail", hypervisors.detail),
    _get("/os-hypervisors/statistics", hypervisors.statistics, 1, 87),
    _get("/os-hypervisors/{hypervisor_id}", hypervisors.show),
    _get("/os-hypervisors/{hypervisor_id}/uptime", hypervisors.uptime, 1, 87),
    _get("/os-hypervisors/{hypervisor_id}/search", hypervisors.search, 1, 52),
    _get("/os-hypervisors/{hypervisor_id}/servers", hypervisors.servers, 1, 52),
    _get("/os-hosts", os_hosts.index, 1, os_hosts.LAST),
    _get("/os-hosts/{host}", os_hosts.show, 1, os_hosts.LAST),
    _put("/os-hosts/{host}", os_hosts.update, 1, os_hosts.LAST),
    _get("/os-hosts/{host}/startup", os_hosts.power("start", Unavailable.HOST_STARTUP), 1, os_hosts.LAST),
    _get("/os-hosts/{host}/shutdown", os_hosts.power("shutdown", Unavailable.HOST_SHUTDOWN), 1, os_hosts.LAST),
    _get("/os-hosts/{host}/reboot", os_hosts.power("reboot", Unavailable.HOST_REBOOT), 1, os_hosts.LAST),
    # Migrations
    _get("/os-migrations", migrations.index),
    _get("/servers/{server_id}/migrations", migrations.index_of_server, 23),
    _get("/servers/{server_id}/migrations/{migration_id}", migrations.show_of_server, 23),
    _delete("/servers/{server_id}/migrations/{migration_id}", migrations.cancel, 24),
    _action(
        "/servers/{server_id}/migrations/{migration_id}/action", "force_complete", live_migration.force_complete, 22
    ),
    # Quota
    _get("/limits", limits.show),
    _get("/os-quota-sets/{tenant_id}", quota_sets.show),
    _put("/os-quota-sets/{tenant_id}", quota_sets.update),
    _delete("/os-quota-sets/{tenant_id}", quota_sets.delete),
    _get("/os-quota-sets/{tenant_id}/defaults", quota_sets.defaults),
    _get("/os-quota-sets/{tenant_id}/detail", quota_sets.detail),
    _get("/os-quota-class-sets/{quota_class}", quota_sets.show_class),
    _put("/os-quota-class-sets/{quota_class}", quota_sets.update_class),
    _get("/os-simple-tenant-usage", tenant_usage.index),
    _get("/os-simple-tenant-usage/{tenant_id}", tenant_usage.show),
    _get("/os-instance_usage_audit_log", usage_audit_log.index),
    _get("/os-instance_usage_audit_log/{before}", usage_audit_log.show),
    # What other services report and ask
    _post("/os-server-external-events", external_events.create),
    _post("/os-assisted-volume-snapshots", assisted_snapshots.create),
    _delete("/os-assisted-volume-snapshots/{snapshot_id}", assisted_snapshots.delete),
    _get("/os-console-auth-tokens/{console_token}", console_auth_tokens.show),
    # Ours: what the Compute API does not have, below one prefix
    _get("/os-causeway/operations", operations.index),
    _get("/os-causeway/operations/{operation_id}", operations.show),
    _delete("/os-causeway/operations/{operation_id}", operations.cancel),
    _get("/os-causeway/servers/{server_id}/operations", operations.index_of_server),
    _get("/os-causeway/audit", audit.show),
    _post("/os-causeway/audit", audit.fix),
    _post("/os-causeway/audit/servers/{server_id}", audit.map_server),
    _get("/os-causeway/cleanups", cleanups.index),
    _get("/os-causeway/cells", cells.index),
    _get("/os-causeway/cells/{cell}", cells.show),
    _get("/os-causeway/cells/{cell}/hosts", cells.index_of_hosts),
    _get("/os-causeway/adoption", adoption.show),
    _get("/os-causeway/drains", drains.index),
    _post("/os-causeway/drains", drains.create),
    _post("/os-causeway/drains/plan", drains.plan),
    _get("/os-causeway/drains/{drain_id}", drains.show),
    _put("/os-causeway/drains/{drain_id}", drains.update),
    _delete("/os-causeway/drains/{drain_id}", drains.delete),
    _get("/os-causeway/drains/{drain_id}/servers", drains.index_of_servers),
    _action("/os-causeway/drains/{drain_id}/action", "start", drains.start),
    _action("/os-causeway/drains/{drain_id}/action", "pause", drains.pause),
    _action("/os-causeway/drains/{drain_id}/action", "resume", drains.resume),
    _action("/os-causeway/drains/{drain_id}/action", "cancel", drains.cancel),
    _action("/os-causeway/drains/{drain_id}/action", "rollback", drains.roll_back),
    # Old clients
    *PROXIES,
    _get("/extensions", extensions.index),
    _get("/extensions/{alias}", extensions.show),
    _get("/versions/{version_id}", version_documents.show),
    _get("/os-baremetal-nodes", baremetal_nodes.index, 1, baremetal_nodes.LAST),
    _post("/os-baremetal-nodes", baremetal_nodes.changed_elsewhere("node-create"), 1, baremetal_nodes.LAST),
    _get("/os-baremetal-nodes/{node_id}", baremetal_nodes.show, 1, baremetal_nodes.LAST),
    _delete("/os-baremetal-nodes/{node_id}", baremetal_nodes.changed_elsewhere("node-delete"), 1, baremetal_nodes.LAST),
    *(
        _action(
            "/os-baremetal-nodes/{node_id}/action",
            name,
            baremetal_nodes.changed_elsewhere(command),
            1,
            baremetal_nodes.LAST,
        )
        for name, command in (("add_interface", "port-create"), ("remove_interface", "port-delete"))
    ),
    *gone.ROUTES,
]
# Until 2.102 ``/os-volumes_boot`` is another name of ``/servers``, for these paths.
ALIASED = ("/servers", "/servers/detail", "/servers/{server_id}", "/servers/{server_id}/action")
LAST_ALIAS = 102
ROUTES += [
    replace(
        route, path=route.path.replace("/servers", "/os-volumes_boot"), last=min(route.last or LAST_ALIAS, LAST_ALIAS)
    )
    for route in ROUTES
    if route.path in ALIASED and route.first <= LAST_ALIAS
]
