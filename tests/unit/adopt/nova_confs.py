"""Files as tools that deploy Nova write them, a role each; all passwords in them are SECRET."""

from __future__ import annotations

SECRET = "s3cr3t-of-nova"
_ACCOUNT = f"""auth_type = password
auth_url = http://10.0.0.254:5000
project_domain_name = Default
user_domain_name = Default
project_name = service
password = {SECRET}
"""

API = f"""
[DEFAULT]
debug = False
log_dir = /var/log/kolla/nova
state_path = /var/lib/nova
osapi_compute_listen = 10.0.0.1
osapi_compute_listen_port = 8774
osapi_compute_workers = 5
metadata_workers = 5
metadata_listen = 10.0.0.1
metadata_listen_port = 8775
allow_resize_to_same_host = true
my_ip = 10.0.0.1
transport_url = rabbit://openstack:{SECRET}@10.0.0.1:5672//
[api]
use_forwarded_for = true
[oslo_middleware]
enable_proxy_headers_parsing = True
[oslo_concurrency]
lock_path = /var/lib/nova/tmp
[cinder]
catalog_info = volumev3:cinderv3:internalURL
os_region_name = RegionOne
username = cinder
{_ACCOUNT}
[neutron]
metadata_proxy_shared_secret = {SECRET}
service_metadata_proxy = true
region_name = RegionOne
valid_interfaces = internal
username = neutron
{_ACCOUNT}
[database]
connection = mysql+pymysql://nova:{SECRET}@10.0.0.254:3306/nova
connection_recycle_time = 10
max_pool_size = 50
max_overflow = 1000
max_retries = -1
[api_database]
connection = mysql+pymysql://nova_api:{SECRET}@10.0.0.254:3306/nova_api
max_retries = -1
[cache]
backend = oslo_cache.memcache_pool
enabled = True
memcache_servers = 10.0.0.1:11211
[keystone_authtoken]
www_authenticate_uri = http://10.0.0.254:5000
memcache_security_strategy = ENCRYPT
memcache_secret_key = {SECRET}
memcached_servers = 10.0.0.1:11211
service_token_roles_required = true
username = nova
{_ACCOUNT}
[wsgi]
api_paste_config = /etc/nova/api-paste.ini
[oslo_policy]
enforce_scope = true
policy_file = policy.yaml
[placement]
username = placement
region_name = RegionOne
valid_interfaces = internal
{_ACCOUNT}
[service_user]
send_service_user_token = true
username = nova
{_ACCOUNT}
"""

CONDUCTOR = f"""
[DEFAULT]
transport_url = rabbit://openstack:{SECRET}@10.0.0.1:5672//
instance_usage_audit = true
my_ip = 10.0.0.1
[conductor]
workers = 5
[database]
connection = mysql+pymysql://nova:{SECRET}@10.0.0.254:3306/nova
[scheduler]
max_attempts = 10
workers = 5
discover_hosts_in_cells_interval = 60
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
enabled_filters = ComputeFilter,ImagePropertiesFilter,PciPassthroughFilter,NUMATopologyFilter
[upgrade_levels]
compute = auto
[oslo_messaging_notifications]
transport_url = rabbit://openstack:{SECRET}@10.0.0.1:5672//
driver = messagingv2
topics = notifications
[oslo_messaging_rabbit]
heartbeat_in_pthread = false
rabbit_quorum_queue = true
[notifications]
notify_on_state_change = vm_and_task_state
notification_format = both
[profiler]
enabled = true
hmac_keys = {SECRET}
connection_string = redis://:{SECRET}@10.0.0.1:6379
[key_manager]
fixed_key = {SECRET}
[placement]
username = placement
{_ACCOUNT}
"""

COMPUTE = f"""
[DEFAULT]
compute_driver = libvirt.LibvirtDriver
state_path = /var/lib/nova
instances_path = $state_path/instances
my_ip = 10.0.0.11
host = compute1
transport_url = rabbit://openstack:{SECRET}@10.0.0.1:5672//
instance_usage_audit = true
instance_usage_audit_period = hour
instance_name_template = instance-%08x
force_config_drive = True
default_ephemeral_format = ext4
vif_plugging_is_fatal = False
use_cow_images = true
[conductor]
workers = 5
[vnc]
novncproxy_host = 10.0.0.11
novncproxy_port = 6080
server_listen = $my_ip
server_proxyclient_address = 10.0.0.11
novncproxy_base_url = http://10.0.0.254:6080/vnc_lite.html
[glance]
api_servers = http://10.0.0.254:9292
num_retries = 3
[libvirt]
connection_uri = "qemu+tcp://10.0.0.11/system"
live_migration_inbound_addr = "10.0.0.11"
live_migration_uri = qemu+ssh://nova@%s/system
images_type = rbd
images_rbd_pool = vms
images_rbd_ceph_conf = /etc/ceph/ceph.conf
rbd_user = nova
rbd_secret_uuid = 457eb676-33da-42ec-9a8c-9293d545c337
disk_cachemodes="network=writeback"
hw_disk_discard = unmap
virt_type = kvm
cpu_mode = host-passthrough
volume_use_multipath = true
num_pcie_ports = 16
[workarounds]
skip_cpu_compare_on_dest = true
[privsep_entrypoint]
helper_command = sudo nova-rootwrap /etc/nova/rootwrap.conf privsep-helper --config-file /etc/nova/nova.conf
[vif_plug_ovs_privileged]
helper_command = sudo nova-rootwrap /etc/nova/rootwrap.conf privsep-helper --config-file /etc/nova/nova.conf
[pci]
passthrough_whitelist = {{"vendor_id": "8086", "product_id": "154d"}}
device_spec = {{"vendor_id": "8086", "product_id": "154d"}}
[barbican]
auth_endpoint = http://10.0.0.254:5000
barbican_endpoint_type = internal
[neutron]
username = neutron
{_ACCOUNT}
[placement]
username = placement
{_ACCOUNT}
[service_user]
send_service_user_token = true
username = nova
{_ACCOUNT}
"""
