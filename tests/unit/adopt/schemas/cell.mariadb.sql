-- Nova's cell database on mariadb, as the migrations of Nova 34 make it: tables that are read.
-- Written by python -m tests.integration.databases.nova_schemas

-- revision 8f2f1571d55b
CREATE TABLE instances (
 created_at DATETIME,
 updated_at DATETIME,
 deleted_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 internal_id INTEGER,
 user_id VARCHAR(255),
 project_id VARCHAR(255),
 image_ref VARCHAR(255),
 kernel_id VARCHAR(255),
 ramdisk_id VARCHAR(255),
 launch_index INTEGER,
 key_name VARCHAR(255),
 key_data MEDIUMTEXT,
 power_state INTEGER,
 vm_state VARCHAR(255),
 memory_mb INTEGER,
 vcpus INTEGER,
 hostname VARCHAR(255),
 host VARCHAR(255),
 user_data MEDIUMTEXT,
 reservation_id VARCHAR(255),
 launched_at DATETIME,
 terminated_at DATETIME,
 display_name VARCHAR(255),
 display_description VARCHAR(255),
 availability_zone VARCHAR(255),
 locked BOOL,
 os_type VARCHAR(255),
 launched_on MEDIUMTEXT,
 instance_type_id INTEGER,
 vm_mode VARCHAR(255),
 uuid VARCHAR(36) NOT NULL,
 architecture VARCHAR(255),
 root_device_name VARCHAR(255),
 access_ip_v4 VARCHAR(39),
 access_ip_v6 VARCHAR(39),
 config_drive VARCHAR(255),
 task_state VARCHAR(255),
 default_ephemeral_device VARCHAR(255),
 default_swap_device VARCHAR(255),
 progress INTEGER,
 auto_disk_config BOOL,
 shutdown_terminate BOOL,
 disable_terminate BOOL,
 root_gb INTEGER,
 ephemeral_gb INTEGER,
 cell_name VARCHAR(255),
 node VARCHAR(255),
 deleted INTEGER,
 locked_by ENUM('owner','admin'),
 cleaned INTEGER,
 ephemeral_key_uuid VARCHAR(36),
 hidden BOOL,
 PRIMARY KEY (id),
 CONSTRAINT uniq_instances0uuid UNIQUE (uuid)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX instances_deleted_created_at_idx ON instances (deleted, created_at);
CREATE INDEX instances_host_deleted_cleaned_idx ON instances (host, deleted, cleaned);
CREATE INDEX instances_host_node_deleted_idx ON instances (host, node, deleted);
CREATE INDEX instances_project_id_deleted_idx ON instances (project_id, deleted);
CREATE INDEX instances_project_id_idx ON instances (project_id);
CREATE INDEX instances_reservation_id_idx ON instances (reservation_id);
CREATE INDEX instances_task_state_updated_at_idx ON instances (task_state, updated_at);
CREATE INDEX instances_terminated_at_launched_at_idx ON instances (terminated_at, launched_at);
CREATE INDEX instances_updated_at_project_id_idx ON instances (updated_at, project_id);
CREATE INDEX instances_uuid_deleted_idx ON instances (uuid, deleted);
CREATE UNIQUE INDEX uuid ON instances (uuid);
CREATE TABLE block_device_mapping (
 created_at DATETIME,
 updated_at DATETIME,
 deleted_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 device_name VARCHAR(255),
 delete_on_termination BOOL,
 snapshot_id VARCHAR(36),
 volume_id VARCHAR(36),
 volume_size INTEGER,
 no_device BOOL,
 connection_info MEDIUMTEXT,
 instance_uuid VARCHAR(36),
 deleted INTEGER,
 source_type VARCHAR(255),
 destination_type VARCHAR(255),
 guest_format VARCHAR(255),
 device_type VARCHAR(255),
 disk_bus VARCHAR(255),
 boot_index INTEGER,
 image_id VARCHAR(36),
 tag VARCHAR(255),
 attachment_id VARCHAR(36),
 uuid VARCHAR(36),
 volume_type VARCHAR(255),
 PRIMARY KEY (id),
 CONSTRAINT uniq_block_device_mapping0uuid UNIQUE (uuid),
 CONSTRAINT block_device_mapping_instance_uuid_fkey FOREIGN KEY(instance_uuid) REFERENCES instances (uuid)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX block_device_mapping_instance_uuid_device_name_idx ON block_device_mapping (instance_uuid, device_name);
CREATE INDEX block_device_mapping_instance_uuid_idx ON block_device_mapping (instance_uuid);
CREATE INDEX block_device_mapping_instance_uuid_volume_id_idx ON block_device_mapping (instance_uuid, volume_id);
CREATE INDEX snapshot_id ON block_device_mapping (snapshot_id);
CREATE INDEX volume_id ON block_device_mapping (volume_id);
CREATE TABLE compute_nodes (
 created_at DATETIME,
 updated_at DATETIME,
 deleted_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 service_id INTEGER,
 vcpus INTEGER NOT NULL,
 memory_mb INTEGER NOT NULL,
 local_gb INTEGER NOT NULL,
 vcpus_used INTEGER NOT NULL,
 memory_mb_used INTEGER NOT NULL,
 local_gb_used INTEGER NOT NULL,
 hypervisor_type MEDIUMTEXT NOT NULL,
 hypervisor_version INTEGER NOT NULL,
 cpu_info MEDIUMTEXT NOT NULL,
 disk_available_least INTEGER,
 free_ram_mb INTEGER,
 free_disk_gb INTEGER,
 current_workload INTEGER,
 running_vms INTEGER,
 hypervisor_hostname VARCHAR(255),
 deleted INTEGER,
 host_ip VARCHAR(39),
 supported_instances TEXT,
 pci_stats TEXT,
 metrics TEXT,
 extra_resources TEXT,
 stats TEXT,
 numa_topology TEXT,
 host VARCHAR(255),
 ram_allocation_ratio FLOAT,
 cpu_allocation_ratio FLOAT,
 uuid VARCHAR(36),
 disk_allocation_ratio FLOAT,
 mapped INTEGER,
 PRIMARY KEY (id),
 CONSTRAINT uniq_compute_nodes0host0hypervisor_hostname0deleted UNIQUE (host, hypervisor_hostname, deleted)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE UNIQUE INDEX compute_nodes_uuid_idx ON compute_nodes (uuid);
CREATE TABLE instance_faults (
 created_at DATETIME,
 updated_at DATETIME,
 deleted_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 instance_uuid VARCHAR(36),
 code INTEGER NOT NULL,
 message VARCHAR(255),
 details MEDIUMTEXT,
 host VARCHAR(255),
 deleted INTEGER,
 PRIMARY KEY (id),
 CONSTRAINT fk_instance_faults_instance_uuid FOREIGN KEY(instance_uuid) REFERENCES instances (uuid)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX instance_faults_host_idx ON instance_faults (host);
CREATE INDEX instance_faults_instance_uuid_deleted_created_at_idx ON instance_faults (instance_uuid, deleted, created_at);
CREATE TABLE instance_info_caches (
 created_at DATETIME,
 updated_at DATETIME,
 deleted_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 network_info MEDIUMTEXT,
 instance_uuid VARCHAR(36) NOT NULL,
 deleted INTEGER,
 PRIMARY KEY (id),
 CONSTRAINT uniq_instance_info_caches0instance_uuid UNIQUE (instance_uuid),
 CONSTRAINT instance_info_caches_instance_uuid_fkey FOREIGN KEY(instance_uuid) REFERENCES instances (uuid)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE TABLE instance_metadata (
 created_at DATETIME,
 updated_at DATETIME,
 deleted_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 `key` VARCHAR(255),
 value VARCHAR(255),
 instance_uuid VARCHAR(36),
 deleted INTEGER,
 PRIMARY KEY (id),
 CONSTRAINT instance_metadata_instance_uuid_fkey FOREIGN KEY(instance_uuid) REFERENCES instances (uuid)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX instance_metadata_instance_uuid_idx ON instance_metadata (instance_uuid);
CREATE TABLE instance_system_metadata (
 created_at DATETIME,
 updated_at DATETIME,
 deleted_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 instance_uuid VARCHAR(36) NOT NULL,
 `key` VARCHAR(255) NOT NULL,
 value VARCHAR(255),
 deleted INTEGER,
 PRIMARY KEY (id),
 CONSTRAINT instance_system_metadata_ibfk_1 FOREIGN KEY(instance_uuid) REFERENCES instances (uuid)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX instance_uuid ON instance_system_metadata (instance_uuid);
CREATE TABLE instance_actions (
 created_at DATETIME,
 updated_at DATETIME,
 deleted_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 action VARCHAR(255),
 instance_uuid VARCHAR(36),
 request_id VARCHAR(255),
 user_id VARCHAR(255),
 project_id VARCHAR(255),
 start_time DATETIME,
 finish_time DATETIME,
 message VARCHAR(255),
 deleted INTEGER,
 PRIMARY KEY (id),
 CONSTRAINT fk_instance_actions_instance_uuid FOREIGN KEY(instance_uuid) REFERENCES instances (uuid)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX instance_actions_instance_uuid_updated_at_idx ON instance_actions (instance_uuid, updated_at);
CREATE INDEX instance_uuid_idx ON instance_actions (instance_uuid);
CREATE INDEX request_id_idx ON instance_actions (request_id);
CREATE TABLE instance_actions_events (
 created_at DATETIME,
 updated_at DATETIME,
 deleted_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 event VARCHAR(255),
 action_id INTEGER,
 start_time DATETIME,
 finish_time DATETIME,
 result VARCHAR(255),
 traceback TEXT,
 deleted INTEGER,
 host VARCHAR(255),
 details TEXT,
 PRIMARY KEY (id),
 FOREIGN KEY(action_id) REFERENCES instance_actions (id)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE TABLE instance_extra (
 created_at DATETIME,
 updated_at DATETIME,
 deleted_at DATETIME,
 deleted INTEGER,
 id INTEGER NOT NULL AUTO_INCREMENT,
 instance_uuid VARCHAR(36) NOT NULL,
 numa_topology TEXT,
 pci_requests TEXT,
 flavor TEXT,
 vcpu_model TEXT,
 migration_context TEXT,
 keypairs TEXT,
 device_metadata TEXT,
 trusted_certs TEXT,
 vpmems TEXT,
 resources TEXT,
 PRIMARY KEY (id),
 CONSTRAINT instance_extra_instance_uuid_fkey FOREIGN KEY(instance_uuid) REFERENCES instances (uuid)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX instance_extra_idx ON instance_extra (instance_uuid);
CREATE TABLE migrations (
 created_at DATETIME,
 updated_at DATETIME,
 deleted_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 source_compute VARCHAR(255),
 dest_compute VARCHAR(255),
 dest_host VARCHAR(255),
 status VARCHAR(255),
 instance_uuid VARCHAR(36),
 old_instance_type_id INTEGER,
 new_instance_type_id INTEGER,
 source_node VARCHAR(255),
 dest_node VARCHAR(255),
 deleted INTEGER,
 migration_type ENUM('migration','resize','live-migration','evacuation'),
 hidden BOOL,
 memory_total BIGINT,
 memory_processed BIGINT,
 memory_remaining BIGINT,
 disk_total BIGINT,
 disk_processed BIGINT,
 disk_remaining BIGINT,
 uuid VARCHAR(36),
 cross_cell_move BOOL,
 user_id VARCHAR(255),
 project_id VARCHAR(255),
 PRIMARY KEY (id),
 CONSTRAINT fk_migrations_instance_uuid FOREIGN KEY(instance_uuid) REFERENCES instances (uuid)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX migrations_by_host_nodes_and_status_idx ON migrations (deleted, source_compute(100), dest_compute(100), source_node(100), dest_node(100), status);
CREATE INDEX migrations_instance_uuid_and_status_idx ON migrations (deleted, instance_uuid, status);
CREATE INDEX migrations_updated_at_idx ON migrations (updated_at);
CREATE UNIQUE INDEX migrations_uuid ON migrations (uuid);
CREATE TABLE pci_devices (
 created_at DATETIME,
 updated_at DATETIME,
 deleted_at DATETIME,
 deleted INTEGER,
 id INTEGER NOT NULL AUTO_INCREMENT,
 compute_node_id INTEGER NOT NULL,
 address VARCHAR(12) NOT NULL,
 product_id VARCHAR(4) NOT NULL,
 vendor_id VARCHAR(4) NOT NULL,
 dev_type VARCHAR(8) NOT NULL,
 dev_id VARCHAR(255),
 label VARCHAR(255) NOT NULL,
 status VARCHAR(36) NOT NULL,
 extra_info TEXT,
 instance_uuid VARCHAR(36),
 request_id VARCHAR(36),
 numa_node INTEGER,
 parent_addr VARCHAR(12),
 uuid VARCHAR(36),
 PRIMARY KEY (id),
 CONSTRAINT uniq_pci_devices0compute_node_id0address0deleted UNIQUE (compute_node_id, address, deleted),
 CONSTRAINT pci_devices_compute_node_id_fkey FOREIGN KEY(compute_node_id) REFERENCES compute_nodes (id)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX ix_pci_devices_compute_node_id_deleted ON pci_devices (compute_node_id, deleted);
CREATE INDEX ix_pci_devices_compute_node_id_parent_addr_deleted ON pci_devices (compute_node_id, parent_addr, deleted);
CREATE INDEX ix_pci_devices_instance_uuid_deleted ON pci_devices (instance_uuid, deleted);
CREATE TABLE services (
 created_at DATETIME,
 updated_at DATETIME,
 deleted_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 host VARCHAR(255),
 `binary` VARCHAR(255),
 topic VARCHAR(255),
 report_count INTEGER NOT NULL,
 disabled BOOL,
 deleted INTEGER,
 disabled_reason VARCHAR(255),
 last_seen_up DATETIME,
 forced_down BOOL,
 version INTEGER,
 uuid VARCHAR(36),
 PRIMARY KEY (id),
 CONSTRAINT uniq_services0host0topic0deleted UNIQUE (host, topic, deleted),
 CONSTRAINT uniq_services0host0binary0deleted UNIQUE (host, `binary`, deleted)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE UNIQUE INDEX services_uuid_idx ON services (uuid);
CREATE TABLE tags (
 resource_id VARCHAR(36) NOT NULL,
 tag VARCHAR(80) NOT NULL,
 PRIMARY KEY (resource_id, tag)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX tags_tag_idx ON tags (tag);
CREATE TABLE virtual_interfaces (
 created_at DATETIME,
 updated_at DATETIME,
 deleted_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 address VARCHAR(255),
 network_id INTEGER,
 uuid VARCHAR(36),
 instance_uuid VARCHAR(36),
 deleted INTEGER,
 tag VARCHAR(255),
 PRIMARY KEY (id),
 CONSTRAINT uniq_virtual_interfaces0address0deleted UNIQUE (address, deleted),
 CONSTRAINT virtual_interfaces_instance_uuid_fkey FOREIGN KEY(instance_uuid) REFERENCES instances (uuid)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX virtual_interfaces_instance_uuid_fkey ON virtual_interfaces (instance_uuid);
CREATE INDEX virtual_interfaces_network_id_idx ON virtual_interfaces (network_id);
CREATE INDEX virtual_interfaces_uuid_idx ON virtual_interfaces (uuid);
ALTER DATABASE DEFAULT CHARACTER SET utf8;

-- revision 16f1fbcab42b

-- revision ccb0fa1a2252
ALTER TABLE block_device_mapping ADD COLUMN encrypted BOOL;
ALTER TABLE block_device_mapping ADD COLUMN encryption_secret_uuid VARCHAR(36);
ALTER TABLE block_device_mapping ADD COLUMN encryption_format VARCHAR(128);
ALTER TABLE block_device_mapping ADD COLUMN encryption_options VARCHAR(4096);

-- revision 960aac0e09ea
DROP INDEX uuid ON instances;

-- revision 1b91788ec3a6

-- revision 1acf2c98e646
ALTER TABLE instances ADD COLUMN compute_id BIGINT;
CREATE INDEX instances_compute_id_deleted_idx ON instances (compute_id, deleted);
ALTER TABLE migrations ADD COLUMN dest_compute_id BIGINT;
CREATE INDEX migrations_dest_compute_id_deleted_idx ON migrations (dest_compute_id, deleted);

-- revision 13863f4e1612
CREATE TABLE share_mapping (
 created_at DATETIME,
 updated_at DATETIME,
 id BIGINT NOT NULL AUTO_INCREMENT,
 uuid VARCHAR(36),
 instance_uuid VARCHAR(36),
 share_id VARCHAR(36),
 status VARCHAR(32),
 tag VARCHAR(48),
 export_location TEXT,
 share_proto VARCHAR(32),
 PRIMARY KEY (id),
 CONSTRAINT share_mapping_instance_uuid_fkey FOREIGN KEY(instance_uuid) REFERENCES instances (uuid)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX share_idx ON share_mapping (share_id);
CREATE INDEX share_mapping_instance_uuid_share_id_idx ON share_mapping (instance_uuid, share_id);

-- revision d60bddf7a903
DROP TABLE share_mapping;
CREATE TABLE share_mapping (
 created_at DATETIME,
 updated_at DATETIME,
 id BIGINT NOT NULL AUTO_INCREMENT,
 uuid VARCHAR(36),
 instance_uuid VARCHAR(36),
 share_id VARCHAR(36),
 status VARCHAR(32),
 tag VARCHAR(48),
 export_location TEXT,
 share_proto VARCHAR(32),
 PRIMARY KEY (id),
 CONSTRAINT uniq_key_pairs0instance_uuid0share_id UNIQUE (instance_uuid, share_id),
 CONSTRAINT uniq_key_pairs0instance_uuid0tag UNIQUE (instance_uuid, tag),
 CONSTRAINT share_mapping_instance_uuid_fkey FOREIGN KEY(instance_uuid) REFERENCES instances (uuid)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX share_idx ON share_mapping (share_id);
CREATE INDEX share_mapping_instance_uuid_share_id_idx ON share_mapping (instance_uuid, share_id);

-- revision 2903cd72dc14

-- revision ab450ba04102
CREATE INDEX migrations_by_dest_host_nodes_and_status_idx ON migrations (deleted, dest_compute, dest_node, status);
CREATE INDEX migrations_by_src_host_nodes_and_status_idx ON migrations (deleted, source_compute, source_node, status);
