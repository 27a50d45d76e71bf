"""Options of nova.conf that mean something else in Causeway, a sentence each, and what matters of those without effect.

An option that is in none of these tables, and that Causeway has, means the same.
"""

from __future__ import annotations

Sentences = dict[tuple[str, str], str]

_OWN_DATABASE = (
    "Causeway needs databases of its own: an empty one, filled by `causeway manage db sync`. Nova's are refused."
)

# (group, option) -> how it differs
DIFFERS: Sentences = {
    ("DEFAULT", "transport_url"): (
        "It must not be Nova's queue: use a virtual host, or a broker, of its own. Computes and conductors of a"
        " cell have that of their cell, all other roles that of the cloud."
    ),
    ("DEFAULT", "state_path"): (
        "A host's files are in hosts/HOST below it, not in it: with Nova's, set instances_path and [libvirt]"
        " nfs_mount_point_base, too. The service's account must be able to write there."
    ),
    ("DEFAULT", "instances_path"): (
        "No two hosts may have the same folder, also not on NFS: the second one does not start. Storage that hosts"
        " share is [libvirt] shared_disks_path, or images_type rbd."
    ),
    ("DEFAULT", "instance_name_template"): (
        "Numbers in it (%08x, %(id)x) are the server's uuid, not the row's id: guests get another name when they"
        " are defined anew, unless the server's record has their name."
    ),
    ("DEFAULT", "my_ip"): (
        "Disks of servers that move inside of the cell go over this address, from host to host, not by ssh."
    ),
    ("DEFAULT", "sync_power_state_interval"): (
        "A conductor stops guests that run though their servers are SHUTOFF; what stopped by itself is recorded"
        " with the host's next report, whatever this is. 0 is with every report."
    ),
    ("DEFAULT", "reclaim_instance_interval"): "Conductors read it, not computes.",
    ("DEFAULT", "rescue_timeout"): "Conductors read it, not computes; it is counted from the rescue itself.",
    ("DEFAULT", "max_concurrent_live_migrations"): (
        "Conductors read it, not computes. It counts those that leave one host."
    ),
    ("DEFAULT", "default_ephemeral_format"): (
        "Empty is ext4, or vfat where there is no tool for it; in Nova it depends on the system in the guest."
    ),
    ("DEFAULT", "force_config_drive"): (
        "The API reads it, not computes: for new servers, which keep their config drive wherever they move."
    ),
    ("api_database", "connection"): _OWN_DATABASE,
    ("database", "connection"): ("Only the conductors of one cell ([conductor] role = cell) read it. " + _OWN_DATABASE),
    ("api", "use_forwarded_for"): (
        "Only the metadata service reads it, and takes the last address of X-Forwarded-For."
    ),
    ("compute", "live_migration_wait_for_vif_plug"): "It holds for ports of Open vSwitch and OVN.",
    ("consoleauth", "token_ttl"): "The API reads it.",
    ("filter_scheduler", "build_failure_weight_multiplier"): (
        "A host counts failures that may be its own, until a build succeeds there, or for half an hour after the"
        " last one."
    ),
    ("filter_scheduler", "enabled_filters"): (
        "The default also has AggregateInstanceExtraSpecsFilter, which ties flavors to cells: add it if you move"
        " servers to another cell."
    ),
    ("libvirt", "images_type"): (
        "qcow2 and default are qcow2 files, rbd is a pool of Ceph. It is for new disks; those that exist stay"
        " where they are until their server moves."
    ),
    ("libvirt", "live_migration_uri"): (
        "It must be the same on all hosts that migrate guests to one another, also of other cells."
    ),
    ("libvirt", "live_migration_scheme"): (
        "It must be the same on all hosts that migrate guests to one another, also of other cells."
    ),
    ("libvirt", "nfs_mount_point_base"): (
        "No two hosts of a machine may have the same folder: the second one does not start."
    ),
    ("libvirt", "rescue_image_id"): "The API reads it, not computes.",
    ("neutron", "service_metadata_proxy"): (
        "The metadata service is a role of its own, `causeway metadata`; only this one reads it."
    ),
    ("neutron", "metadata_proxy_shared_secret"): (
        "The metadata service is a role of its own, `causeway metadata`; only this one reads it."
    ),
    ("notifications", "notification_format"): (
        "Only versioned notifications are sent: both is as versioned, unversioned (the default) is none."
    ),
    ("notifications", "notify_on_state_change"): (
        "The process that saved the change sends them: an API or a conductor, never a compute."
    ),
    ("oslo_policy", "policy_dirs"): (
        "It must be a folder of Causeway's own: `causeway adopt freeze` denies changes by a file in Nova's."
    ),
    ("oslo_policy", "policy_file"): (
        "Rules have Nova's names, and rules that nothing asks are listed at the start; those of Causeway's own API"
        " begin with causeway:."
    ),
    ("serial_console", "base_url"): "It must name `causeway console-proxy`, which serves all kinds of consoles.",
    ("service_user", "send_service_user_token"): (
        "A service token is always sent when volume attachments are deleted."
    ),
    ("upgrade_levels", "compute"): "Versions are Causeway's. Names of Nova's releases mean no limit.",
    ("vnc", "novncproxy_base_url"): (
        "It must name `causeway console-proxy`; its page is /screen.html, noVNC's are /vnc_lite.html and"
        " /vnc_auto.html."
    ),
    ("oslo_messaging_notifications", "transport_url"): (
        "If it is not set, notifications of conductors of a cell go to the queue of their cell."
    ),
    ("oslo_messaging_notifications", "driver"): (
        "Only versioned notifications are sent ([notifications] notification_format)."
    ),
}

# (group, option) -> what an operator has to know of one that Causeway does not have
MATTERS: Sentences = {
    ("DEFAULT", "use_cow_images"): (
        "Disks are always qcow2 files on base images. Servers whose disks are raw files can't be taken over as"
        " they are."
    ),
    ("DEFAULT", "preallocate_images"): "Disks are never preallocated.",
    ("DEFAULT", "force_raw_images"): "Base images keep the format of their image.",
    ("DEFAULT", "vcpu_pin_set"): "Set [compute] cpu_shared_set and cpu_dedicated_set.",
    ("DEFAULT", "reserved_huge_pages"): (
        "No huge pages are kept for the host: all that it has may be given to guests."
    ),
    ("DEFAULT", "resume_guests_state_on_host_boot"): (
        "Guests that ran are not started by themselves after their host was restarted."
    ),
    ("DEFAULT", "instance_usage_audit"): "No periodic usage notifications (compute.instance.exists) are sent.",
    ("DEFAULT", "compute_monitors"): "Hosts report no metrics of their CPUs.",
    ("DEFAULT", "osapi_compute_listen"): "Use `causeway api --bind`.",
    ("DEFAULT", "osapi_compute_listen_port"): "Use `causeway api --bind`.",
    ("DEFAULT", "osapi_compute_workers"): "Use `causeway api --workers`.",
    ("DEFAULT", "metadata_listen"): "Use `causeway metadata --bind`.",
    ("DEFAULT", "metadata_listen_port"): "Use `causeway metadata --bind`.",
    ("DEFAULT", "metadata_workers"): "Use `causeway metadata --workers`.",
    ("conductor", "workers"): "Run several conductors, each with a `host` of its own.",
    ("scheduler", "workers"): "Run several schedulers.",
    ("compute", "provider_config_location"): "Resource providers get no inventories and traits from files.",
    ("compute", "max_disk_devices_to_attach"): "The number of a guest's disks is not limited by an option.",
    ("compute", "image_type_exclude_list"): "Set [compute] allowed_image_formats.",
    ("glance", "api_servers"): "Set [glance] endpoint_override, or let the catalog name the image service.",
    ("glance", "verify_glance_signatures"): "Signatures of images are not checked.",
    ("libvirt", "disk_cachemodes"): "The cache is none where direct I/O works, else writeback.",
    ("libvirt", "volume_use_multipath"): (
        "Volumes are connected by one path. Guests that run with several keep them until they are started again."
    ),
    ("libvirt", "hw_disk_discard"): "Guests can always discard blocks (unmap).",
    ("libvirt", "nfs_mount_options"): "Shares are mounted with the options that the volume service names.",
    ("libvirt", "pmem_namespaces"): "Guests can't have persistent memory: servers that have it can't be taken over.",
    ("libvirt", "num_memory_encrypted_guests"): "Guests can't have encrypted memory.",
    ("libvirt", "file_backed_memory"): "The memory of guests is never in files.",
    ("libvirt", "live_migration_tunnelled"): (
        "Live migrations are not tunnelled through libvirtd; live_migration_with_native_tls encrypts them."
    ),
    ("libvirt", "num_pcie_ports"): "Guests have the number of PCIe ports that libvirt gives them.",
    ("libvirt", "cpu_power_management"): "Hosts do not switch CPUs off.",
    ("pci", "passthrough_whitelist"): "Set [pci] device_spec: the same content.",
    ("pci", "report_in_placement"): "PCI devices are not resources of Placement.",
    ("filter_scheduler", "pci_in_placement"): "PCI devices are not resources of Placement.",
    ("scheduler", "discover_hosts_in_cells_interval"): "Hosts are found by themselves, with their first report.",
    ("barbican", "auth_endpoint"): "Credentials for the key manager are in [barbican_service_user].",
    ("key_manager", "fixed_key"): "Keys are only in Barbican.",
    ("vnc", "novncproxy_host"): "Use `causeway console-proxy --bind`.",
    ("vnc", "novncproxy_port"): "Use `causeway console-proxy --bind`.",
    ("vnc", "auth_schemes"): (
        "Screens of guests ask for no password, and TLS ends at the proxy: only proxies may reach them."
    ),
    ("serial_console", "serialproxy_host"): "Use `causeway console-proxy --bind`.",
    ("serial_console", "serialproxy_port"): "Use `causeway console-proxy --bind`.",
}

# Groups without effect -> what has to be known of them
MATTERING_GROUPS: dict[str, str] = {
    "spice": "Screens are served by VNC only ([vnc] enabled).",
    "devices": "Guests can't have virtual GPUs (mediated devices): servers that have them can't be taken over.",
    "ephemeral_storage_encryption": "Local disks are not encrypted.",
    "manila": "Guests can't have shares: servers that have them can't be taken over.",
    "cyborg": "Guests can't have accelerators: servers that have them can't be taken over.",
    "ironic": "Bare metal is not served: leave these hosts to Nova.",
    "vmware": "VMware is not served: leave these hosts to Nova.",
    "vault": "Keys are only in Barbican.",
    "wsgi": "`causeway api` and `causeway metadata` have their own web server; put TLS in front of it.",
}

# Groups of libraries' options that Nova's services read, and no process of Causeway -> what has to be known of them
UNREAD_GROUPS: dict[str, str] = {
    "privsep": "A compute that runs as root needs no helper.",
    "nova_sys_admin": "A compute that runs as root needs no helper.",
    "vif_plug_ovs_privileged": "A compute that runs as root needs no helper.",
    "vif_plug_linux_bridge_privileged": "A compute that runs as root needs no helper.",
    "privsep_osbrick": "A compute that runs as root needs no helper.",
    "privsep_entrypoint": "A compute that runs as root needs no helper.",
    "oslo_middleware": "Set [api] compute_link_prefix, for links in answers behind a proxy.",
    "oslo_reports": "There are no reports of this kind.",
    "oslo_versionedobjects": "",
    "cors": "The API answers no requests of pages of other sites: let a proxy do it.",
    "healthcheck": "/healthcheck is always there, and has no options.",
    "ssl": "Put TLS in front of the API.",
}

# (group, option) -> what to do about a value that is not accepted
INSTEAD: Sentences = {
    ("DEFAULT", "compute_driver"): "Only hosts of libvirt can be taken over: leave all others to Nova.",
    ("libvirt", "images_type"): (
        "Servers whose local disks are raw or flat files, or LVM, can't be taken over as they are: move them in"
        " Nova to hosts with qcow2 files."
    ),
    ("libvirt", "virt_type"): "Guests run in KVM or QEMU: leave other hosts to Nova.",
    ("key_manager", "backend"): "Keys are only in Barbican: take the option out, and move the keys there.",
    ("filter_scheduler", "enabled_filters"): "Take out the other names. Zones and disabled hosts need no filter.",
    ("filter_scheduler", "weight_classes"): "Write all, or names of single weighers; Nova's all_weighers is all.",
    ("DEFAULT", "instances_path"): "Write an absolute path.",
    ("libvirt", "nfs_mount_point_base"): "Write an absolute path.",
}

# (group, option) -> what to write into the file of a compute that has not set it
OF_COMPUTES: Sentences = {
    ("DEFAULT", "instances_path"): (
        "$state_path/instances with Nova's state_path, where the guests are that it takes over."
    ),
    ("libvirt", "nfs_mount_point_base"): (
        "$state_path/mnt with Nova's state_path, where the volumes of these guests are mounted."
    ),
}

__all__ = ["DIFFERS", "INSTEAD", "MATTERING_GROUPS", "MATTERS", "OF_COMPUTES", "UNREAD_GROUPS", "Sentences"]
