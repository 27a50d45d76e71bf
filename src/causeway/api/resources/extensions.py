"""``/extensions``: what old clients ask for to find out what an API has. Source: Compute API reference, "Extensions".

The list is Nova's, which has not changed since microversions took the place of extensions. It names some that are gone from
every API, because clients look for a name and then do without what they don't use.
"""

from __future__ import annotations

from typing import Any

from causeway import errors
from causeway.api.answers import proxies as answers
from causeway.api.request import ApiRequest, Response, handler

_UPDATED = "2014-12-03T00:00:00Z"
# alias -> (name, description)
_EXTENSIONS = {
    "NMN": ("Multinic", "Several addresses of one server on a network."),
    "OS-DCF": ("DiskConfig", "How the disk of a server is partitioned."),
    "OS-EXT-AZ": ("ExtendedAvailabilityZone", "The availability zone of a server."),
    "OS-EXT-IMG-SIZE": ("ImageSize", "The size of an image."),
    "OS-EXT-IPS": ("ExtendedIps", "The type of an address."),
    "OS-EXT-IPS-MAC": ("ExtendedIpsMac", "The MAC address beside an address."),
    "OS-EXT-SRV-ATTR": ("ExtendedServerAttributes", "Host, node and name of a server, for administrators."),
    "OS-EXT-STS": ("ExtendedStatus", "The states of a server behind its status."),
    "OS-FLV-DISABLED": ("FlavorDisabled", "Whether a flavor is disabled."),
    "OS-FLV-EXT-DATA": ("FlavorExtraData", "The ephemeral disk of a flavor."),
    "OS-SCH-HNT": ("SchedulerHints", "Hints for the scheduler."),
    "OS-SRV-USG": ("ServerUsage", "When a server was launched and terminated."),
    "os-access-ips": ("AccessIPs", "The addresses under which users reach a server."),
    "os-admin-actions": ("AdminActions", "Actions of administrators, such as os-resetState."),
    "os-admin-password": ("AdminPassword", "Change of the administrator's password in a guest."),
    "os-agents": ("Agents", "Builds of guest agents."),
    "os-aggregates": ("Aggregates", "Host aggregates."),
    "os-assisted-volume-snapshots": ("AssistedVolumeSnapshots", "Snapshots of volumes that a guest uses."),
    "os-attach-interfaces": ("AttachInterfaces", "Ports of a server."),
    "os-availability-zone": ("AvailabilityZone", "Availability zones, and servers that are made in them."),
    "os-baremetal-ext-status": ("BareMetalExtStatus", "The status of a bare-metal node."),
    "os-baremetal-nodes": ("BareMetalNodes", "Bare-metal nodes."),
    "os-block-device-mapping": ("BlockDeviceMapping", "Disks of a new server."),
    "os-block-device-mapping-v2-boot": ("BlockDeviceMappingV2Boot", "Disks of a new server, in their second form."),
    "os-cell-capacities": ("CellCapacities", "The capacities of cells of the first kind."),
    "os-cells": ("Cells", "Cells of the first kind."),
    "os-certificates": ("Certificates", "X.509 certificates."),
    "os-cloudpipe": ("Cloudpipe", "Servers that are gateways to a project's network."),
    "os-cloudpipe-update": ("CloudpipeUpdate", "The address of such a gateway."),
    "os-config-drive": ("ConfigDrive", "Config drives."),
    "os-console-auth-tokens": ("ConsoleAuthTokens", "What the token of a console stands for."),
    "os-console-output": ("ConsoleOutput", "The console log of a server."),
    "os-consoles": ("Consoles", "Consoles of servers."),
    "os-create-backup": ("CreateBackup", "Backups of a server that replace one another."),
    "os-create-server-ext": ("Createserverext", "Security groups and more when a server is made."),
    "os-deferred-delete": ("DeferredDelete", "Servers that can be restored after their deletion."),
    "os-evacuate": ("Evacuate", "Evacuation of servers from a dead host."),
    "os-extended-evacuate-find-host": ("ExtendedEvacuateFindHost", "Evacuation to a host that the scheduler chooses."),
    "os-extended-floating-ips": ("ExtendedFloatingIps", "The fixed address that gets a floating IP."),
    "os-extended-hypervisors": ("ExtendedHypervisors", "More about hypervisors."),
    "os-extended-networks": ("ExtendedNetworks", "More about networks."),
    "os-extended-quotas": ("ExtendedQuotas", "Deletion of quotas, and quotas that are set by force."),
    "os-extended-rescue-with-image": ("ExtendedRescueWithImage", "Rescue with a given image."),
    "os-extended-services": ("ExtendedServices", "The reason why a service is disabled."),
    "os-extended-services-delete": ("ExtendedServicesDelete", "Deletion of services."),
    "os-extended-status": ("ExtendedStatus", "The states of a server behind its status."),
    "os-extended-volumes": ("ExtendedVolumes", "The volumes of a server."),
    "os-fixed-ips": ("FixedIPs", "Fixed addresses."),
    "os-flavor-access": ("FlavorAccess", "Which projects may use a flavor."),
    "os-flavor-extra-specs": ("FlavorExtraSpecs", "Extra specs of flavors."),
    "os-flavor-manage": ("FlavorManage", "Creation and deletion of flavors."),
    "os-flavor-rxtx": ("FlavorRxtx", "The rxtx_factor of a flavor."),
    "os-flavor-swap": ("FlavorSwap", "The swap disk of a flavor."),
    "os-floating-ip-dns": ("FloatingIpDns", "DNS names of floating IPs."),
    "os-floating-ip-pools": ("FloatingIpPools", "Pools of floating IPs."),
    "os-floating-ips": ("FloatingIps", "Floating IPs."),
    "os-floating-ips-bulk": ("FloatingIpsBulk", "Many floating IPs at once."),
    "os-fping": ("Fping", "Which servers answer a ping."),
    "os-hide-server-addresses": ("HideServerAddresses", "Addresses that are not shown in some states."),
    "os-hosts": ("Hosts", "Hosts."),
    "os-hypervisor-status": ("HypervisorStatus", "The status of hypervisors."),
    "os-hypervisors": ("Hypervisors", "Hypervisors."),
    "os-instance-actions": ("InstanceActions", "The actions on a server and their events."),
    "os-instance_usage_audit_log": ("OSInstanceUsageAuditLog", "Logs of usage audits."),
    "os-keypairs": ("Keypairs", "Key pairs."),
    "os-lock-server": ("LockServer", "Locks of servers."),
    "os-migrate-server": ("MigrateServer", "Cold and live migration of servers."),
    "os-migrations": ("Migrations", "Migrations of servers."),
    "os-multiple-create": ("MultipleCreate", "Several servers made by one request."),
    "os-networks": ("Networks", "Networks, for administrators."),
    "os-networks-associate": ("NetworkAssociationSupport", "Networks of projects and hosts."),
    "os-pause-server": ("PauseServer", "Pause and unpause of servers."),
    "os-personality": ("Personality", "Files in the disk of a new server."),
    "os-preserve-ephemeral-rebuild": ("PreserveEphemeralOnRebuild", "Ephemeral disks that survive a rebuild."),
    "os-quota-class-sets": ("QuotaClasses", "Quotas of classes of projects."),
    "os-quota-sets": ("Quotas", "Quotas of projects."),
    "os-rescue": ("Rescue", "Rescue of servers."),
    "os-security-group-default-rules": ("SecurityGroupDefaultRules", "Rules of default security groups."),
    "os-security-groups": ("SecurityGroups", "Security groups."),
    "os-server-diagnostics": ("ServerDiagnostics", "Diagnostics of servers."),
    "os-server-external-events": ("ServerExternalEvents", "Events that other services report."),
    "os-server-group-quotas": ("ServerGroupQuotas", "Quotas of server groups."),
    "os-server-groups": ("ServerGroups", "Server groups."),
    "os-server-list-multi-status": ("ServerListMultiStatus", "Lists of servers in one of several statuses."),
    "os-server-password": ("ServerPassword", "Passwords that guests have posted."),
    "os-server-sort-keys": ("ServerSortKeys", "Lists of servers in a given order."),
    "os-server-start-stop": ("ServerStartStop", "Start and stop of servers."),
    "os-services": ("Services", "The services of the cloud."),
    "os-shelve": ("Shelve", "Shelved servers."),
    "os-simple-tenant-usage": ("SimpleTenantUsage", "What projects have used."),
    "os-suspend-server": ("SuspendServer", "Suspend and resume of servers."),
    "os-tenant-networks": ("OSTenantNetworks", "Networks of a project."),
    "os-used-limits": ("UsedLimits", "How much of its limits a project uses."),
    "os-used-limits-for-admin": ("UsedLimitsForAdmin", "The same of other projects, for administrators."),
    "os-user-data": ("UserData", "User data of a new server."),
    "os-user-quotas": ("UserQuotas", "Quotas of users."),
    "os-virtual-interfaces": ("VirtualInterfaces", "Virtual interfaces of servers."),
    "os-volume-attachment-update": ("VolumeAttachmentUpdate", "A volume of a server that is swapped for another one."),
    "os-volumes": ("Volumes", "Volumes."),
}


def _view(alias: str) -> dict[str, Any]:
    name, description = _EXTENSIONS[alias]
    return {
        "alias": alias,
        "name": name,
        "description": description,
        "namespace": "http://docs.openstack.org/compute/ext/fake_xml",
        "updated": _UPDATED,
        "links": [],
    }


@handler(answer=answers.EXTENSIONS)
def index(request: ApiRequest) -> Response:
    request.authorize("os_compute_api:extensions")
    return Response(200, {"extensions": [_view(alias) for alias in sorted(_EXTENSIONS)]})


@handler(answer=answers.EXTENSION)
def show(request: ApiRequest, alias: str) -> Response:
    request.authorize("os_compute_api:extensions")
    if alias not in _EXTENSIONS:
        raise errors.NotFound(f"There is no extension {alias}.")
    return Response(200, {"extension": _view(alias)})
