"""Options of nova.conf that have no effect here. They are logged once when a process starts, so that nobody relies on them.

These are only names; our own options are in the modules beside this one. `GROUPS` has whole groups: ``[workarounds]``, and
those of other hypervisors and consoles.
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Groups without any of our options. (workarounds has next to none, and its names change with every release.)
GROUPS = _names(
    """
    cache cyborg devices ephemeral_storage_encryption guestfs hyperv
    ironic manila mks powervm profiler rdp remote_debug spice vault vmware workarounds wsgi xenserver
    zvm
    """
)

_DATABASE = _names(
    """
    asyncio_connection asyncio_slave_connection backend connection_debug connection_parameters connection_recycle_time
    connection_trace db_inc_retry_interval db_max_retries db_max_retry_interval db_retry_interval max_overflow
    max_pool_size max_retries mysql_enable_ndb mysql_sql_mode mysql_wsrep_sync_wait pool_timeout retry_interval
    slave_connection synchronous_reader use_db_reconnect
    """
)

# group -> options
NAMES: dict[str, frozenset[str]] = {
    "barbican": _names("auth_endpoint cafile certfile insecure keyfile number_of_retries retry_delay"),
    "key_manager": _names("fixed_key"),
    "api_database": _DATABASE,
    "database": _DATABASE,
    "DEFAULT": _names(
        """
        api_paste_config arq_binding_timeout backdoor_port backdoor_socket bindir block_device_allocate_retries
        block_device_allocate_retries_interval cell_worker_thread_pool_size cert client_socket_timeout
        compute_monitors compute_unified_topic concurrency_backend config_drive_format console_host daemon db_driver
        default_access_ip_network_name default_floating_pool default_green_pool_size default_thread_pool_size
        disable_process_locking enable_network_quota enabled_apis enabled_ssl_apis fatal_exception_format_errors
        firewall_driver flat_injected force_raw_images graceful_shutdown_timeout heal_instance_info_cache_interval
        image_cache_manager_interval initialize_retry_interval injected_network_template instance_build_timeout
        instance_delete_interval instance_usage_audit instance_usage_audit_period key live_migration_retry_count
        lock_path log_options manager_shutdown_timeout max_concurrent_builds max_concurrent_snapshots max_header_line
        maximum_instance_delete_attempts metadata_listen metadata_listen_port metadata_workers migrate_max_retries
        mkisofs_cmd my_block_storage_ip my_shared_fs_storage_ip network_allocate_retries osapi_compute_listen
        osapi_compute_listen_port osapi_compute_unique_server_name_scope osapi_compute_workers ovs_bridge
        periodic_enable periodic_fuzzy_delay pointer_model preallocate_images pybasedir reboot_timeout rebuild_timeout
        record regenerate_instance_uuid reserved_huge_pages resize_fs_using_block_device
        resume_guests_state_on_host_boot rootwrap_config run_external_periodic_tasks running_deleted_instance_action
        running_deleted_instance_poll_interval running_deleted_instance_timeout scheduler_instance_sync_interval
        secure_proxy_ssl_header servicegroup_driver shutdown_retry_interval source_is_ipv6 ssl_only
        stale_share_access_reconcile_interval sync_power_state_pool_size tcp_keepidle tempdir
        thread_pool_statistic_period timeout_nbd update_resources_interval use_cow_images use_rootwrap_daemon
        vcpu_pin_set virt_mkfs volume_usage_poll_interval web wsgi_default_pool_size wsgi_keep_alive wsgi_log_format
        wsgi_server_debug
        """
    ),
    "image_cache": _names(
        """
        manager_interval remove_unused_base_images remove_unused_original_minimum_age_seconds
        remove_unused_resized_minimum_age_seconds subdirectory_name
        """
    ),
    "api": _names(
        """
        config_drive_skip_versions instance_list_cells_batch_fixed_size instance_list_cells_batch_strategy
        instance_list_per_project_cells local_metadata_per_cell neutron_default_project_id
        use_neutron_default_nets validate_response
        """
    ),
    "cinder": _names(
        """
        debug
        """
    ),
    "compute": _names(
        """
        consecutive_build_service_disable_threshold image_type_exclude_list max_concurrent_disk_ops
        max_disk_devices_to_attach packing_host_numa_cells_allocation_strategy provider_config_location
        resource_provider_association_refresh sharing_providers_max_uuids_per_request shutdown_retry_interval
        update_resources_max_workers vmdk_allowed_types
        """
    ),
    "conductor": _names(
        """
        workers
        """
    ),
    "console": _names(
        """
        ssl_ciphers ssl_minimum_version
        """
    ),
    "filter_scheduler": _names(
        """
        aggregate_image_properties_isolation_namespace aggregate_image_properties_isolation_separator available_filters
        image_properties_default_architecture image_props_weight_multiplier image_props_weight_setting pci_in_placement
        pci_weight_multiplier track_instance_changes
        """
    ),
    "glance": _names(
        """
        api_servers certificate_validation connect_retries connect_retry_delay debug default_trusted_certificate_ids
        enable_certificate_validation enable_rbd_download rbd_ceph_conf rbd_connect_timeout rbd_pool rbd_user
        retriable_status_codes service_name status_code_retries status_code_retry_delay verify_glance_signatures
        """
    ),
    "libvirt": _names(
        """
        ceph_mount_options ceph_mount_point_base cpu_power_governor_high cpu_power_governor_low cpu_power_management
        cpu_power_management_strategy device_detach_attempts device_detach_timeout disk_cachemodes disk_prefix
        enabled_perf_events file_backed_memory gid_maps hw_disk_discard images_address_space_limit
        images_cpu_time_limit images_rbd_glance_copy_poll_interval images_rbd_glance_copy_timeout
        images_rbd_glance_store_name images_volume_group inject_key inject_partition inject_password iscsi_iface
        iser_use_multipath live_migration_downtime_delay live_migration_downtime_steps
        live_migration_parallel_connections live_migration_tunnelled max_queues mem_stats_period_seconds
        migration_inbound_addr nfs_mount_options num_aoe_discover_tries num_intel_tdx_guests num_iser_scan_tries
        num_memory_encrypted_guests num_nvme_discover_tries num_pcie_ports num_volume_scan_tries pmem_namespaces
        quobyte_client_cfg quobyte_mount_point_base rbd_destroy_volume_retries rbd_destroy_volume_retry_interval
        realtime_scheduler_priority remote_filesystem_transport rescue_kernel_id rescue_ramdisk_id rng_dev_path
        rx_queue_size smbfs_mount_options smbfs_mount_point_base snapshot_compression snapshot_image_format
        snapshots_directory sparse_logical_volumes supported_tpm_secret_security swtpm_group swtpm_user tb_cache_size
        tx_queue_size uid_maps use_default_aio_mode_for_volumes use_virtio_for_bridges virtlogd_log_max_size
        volume_clear volume_clear_size volume_enforce_multipath volume_use_multipath vzstorage_cache_path
        vzstorage_log_path vzstorage_mount_group vzstorage_mount_opts vzstorage_mount_perms vzstorage_mount_point_base
        vzstorage_mount_user wait_soft_reboot_seconds xen_hvmloader_path
        """
    ),
    "metrics": _names(
        """
        required weight_multiplier weight_of_unavailable weight_setting
        """
    ),
    "neutron": _names(
        """
        connect_retries connect_retry_delay default_floating_pool extension_sync_interval ovs_bridge physnets
        retriable_status_codes service_name status_code_retries status_code_retry_delay
        """
    ),
    "notifications": _names(
        """
        default_level default_publisher_id include_share_mapping
        """
    ),
    "pci": _names(
        """
        passthrough_whitelist report_in_placement
        """
    ),
    "quota": _names(
        """
        fixed_ips floating_ips max_age reservation_expire
        security_group_rules security_groups until_refresh
        """
    ),
    "scheduler": _names(
        """
        discover_hosts_in_cells_interval driver periodic_task_interval
        query_placement_for_routed_network_aggregates workers
        """
    ),
    "serial_console": _names(
        """
        serialproxy_host serialproxy_port
        """
    ),
    "upgrade_levels": _names(
        """
        baseapi cert conductor intercell network scheduler
        """
    ),
    "vnc": _names(
        """
        auth_schemes novncproxy_host novncproxy_port vencrypt_ca_certs vencrypt_client_cert vencrypt_client_key
        """
    ),
}

__all__ = ["GROUPS", "NAMES"]
