-- Nova's api database on mariadb, as the migrations of Nova 34 make it: tables that are read.
-- Written by python -m tests.integration.databases.nova_schemas

-- revision d67eeaabee36
CREATE TABLE cell_mappings (
 created_at DATETIME,
 updated_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 uuid VARCHAR(36) NOT NULL,
 name VARCHAR(255),
 transport_url TEXT,
 database_connection TEXT,
 disabled BOOL,
 PRIMARY KEY (id),
 CONSTRAINT uniq_cell_mappings0uuid UNIQUE (uuid)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX uuid_idx ON cell_mappings (uuid);
CREATE TABLE host_mappings (
 created_at DATETIME,
 updated_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 cell_id INTEGER NOT NULL,
 host VARCHAR(255) NOT NULL,
 PRIMARY KEY (id),
 CONSTRAINT uniq_host_mappings0host UNIQUE (host),
 FOREIGN KEY(cell_id) REFERENCES cell_mappings (id)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX host_idx ON host_mappings (host);
CREATE TABLE instance_mappings (
 created_at DATETIME,
 updated_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 instance_uuid VARCHAR(36) NOT NULL,
 cell_id INTEGER,
 project_id VARCHAR(255) NOT NULL,
 queued_for_delete BOOL,
 user_id VARCHAR(255),
 PRIMARY KEY (id),
 CONSTRAINT uniq_instance_mappings0instance_uuid UNIQUE (instance_uuid),
 FOREIGN KEY(cell_id) REFERENCES cell_mappings (id)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX instance_mappings_user_id_project_id_idx ON instance_mappings (user_id, project_id);
CREATE INDEX instance_uuid_idx ON instance_mappings (instance_uuid);
CREATE INDEX project_id_idx ON instance_mappings (project_id);
CREATE TABLE flavors (
 created_at DATETIME,
 updated_at DATETIME,
 name VARCHAR(255) NOT NULL,
 id INTEGER NOT NULL AUTO_INCREMENT,
 memory_mb INTEGER NOT NULL,
 vcpus INTEGER NOT NULL,
 swap INTEGER NOT NULL,
 vcpu_weight INTEGER,
 flavorid VARCHAR(255) NOT NULL,
 rxtx_factor FLOAT,
 root_gb INTEGER,
 ephemeral_gb INTEGER,
 disabled BOOL,
 is_public BOOL,
 description TEXT,
 PRIMARY KEY (id),
 CONSTRAINT uniq_flavors0flavorid UNIQUE (flavorid),
 CONSTRAINT uniq_flavors0name UNIQUE (name)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE TABLE flavor_extra_specs (
 created_at DATETIME,
 updated_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 flavor_id INTEGER NOT NULL,
 `key` VARCHAR(255) NOT NULL,
 value VARCHAR(255),
 PRIMARY KEY (id),
 CONSTRAINT uniq_flavor_extra_specs0flavor_id0key UNIQUE (flavor_id, `key`),
 FOREIGN KEY(flavor_id) REFERENCES flavors (id)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX flavor_extra_specs_flavor_id_key_idx ON flavor_extra_specs (flavor_id, `key`);
CREATE TABLE flavor_projects (
 created_at DATETIME,
 updated_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 flavor_id INTEGER NOT NULL,
 project_id VARCHAR(255) NOT NULL,
 PRIMARY KEY (id),
 CONSTRAINT uniq_flavor_projects0flavor_id0project_id UNIQUE (flavor_id, project_id),
 FOREIGN KEY(flavor_id) REFERENCES flavors (id)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE TABLE request_specs (
 created_at DATETIME,
 updated_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 instance_uuid VARCHAR(36) NOT NULL,
 spec MEDIUMTEXT NOT NULL,
 PRIMARY KEY (id),
 CONSTRAINT uniq_request_specs0instance_uuid UNIQUE (instance_uuid)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX request_spec_instance_uuid_idx ON request_specs (instance_uuid);
CREATE TABLE build_requests (
 created_at DATETIME,
 updated_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 request_spec_id INTEGER,
 project_id VARCHAR(255) NOT NULL,
 user_id VARCHAR(255),
 display_name VARCHAR(255),
 instance_metadata TEXT,
 progress INTEGER,
 vm_state VARCHAR(255),
 task_state VARCHAR(255),
 image_ref VARCHAR(255),
 access_ip_v4 VARCHAR(39),
 access_ip_v6 VARCHAR(39),
 info_cache TEXT,
 security_groups TEXT,
 config_drive BOOL,
 key_name VARCHAR(255),
 locked_by ENUM('owner','admin'),
 instance_uuid VARCHAR(36),
 instance MEDIUMTEXT,
 block_device_mappings MEDIUMTEXT,
 tags TEXT,
 PRIMARY KEY (id),
 CONSTRAINT uniq_build_requests0instance_uuid UNIQUE (instance_uuid)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX build_requests_instance_uuid_idx ON build_requests (instance_uuid);
CREATE INDEX build_requests_project_id_idx ON build_requests (project_id);
CREATE TABLE key_pairs (
 created_at DATETIME,
 updated_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 name VARCHAR(255) NOT NULL,
 user_id VARCHAR(255) NOT NULL,
 fingerprint VARCHAR(255),
 public_key TEXT,
 type ENUM('ssh','x509') NOT NULL DEFAULT 'ssh',
 PRIMARY KEY (id),
 CONSTRAINT uniq_key_pairs0user_id0name UNIQUE (user_id, name)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE TABLE aggregates (
 created_at DATETIME,
 updated_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 uuid VARCHAR(36),
 name VARCHAR(255),
 PRIMARY KEY (id),
 CONSTRAINT uniq_aggregate0name UNIQUE (name)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX aggregate_uuid_idx ON aggregates (uuid);
CREATE TABLE aggregate_hosts (
 created_at DATETIME,
 updated_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 host VARCHAR(255),
 aggregate_id INTEGER NOT NULL,
 PRIMARY KEY (id),
 CONSTRAINT uniq_aggregate_hosts0host0aggregate_id UNIQUE (host, aggregate_id),
 FOREIGN KEY(aggregate_id) REFERENCES aggregates (id)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE TABLE aggregate_metadata (
 created_at DATETIME,
 updated_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 aggregate_id INTEGER NOT NULL,
 `key` VARCHAR(255) NOT NULL,
 value VARCHAR(255) NOT NULL,
 PRIMARY KEY (id),
 CONSTRAINT uniq_aggregate_metadata0aggregate_id0key UNIQUE (aggregate_id, `key`),
 FOREIGN KEY(aggregate_id) REFERENCES aggregates (id)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX aggregate_metadata_key_idx ON aggregate_metadata (`key`);
CREATE TABLE instance_groups (
 created_at DATETIME,
 updated_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 user_id VARCHAR(255),
 project_id VARCHAR(255),
 uuid VARCHAR(36) NOT NULL,
 name VARCHAR(255),
 PRIMARY KEY (id),
 CONSTRAINT uniq_instance_groups0uuid UNIQUE (uuid)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE TABLE instance_group_policy (
 created_at DATETIME,
 updated_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 policy VARCHAR(255),
 group_id INTEGER NOT NULL,
 rules TEXT,
 PRIMARY KEY (id),
 FOREIGN KEY(group_id) REFERENCES instance_groups (id)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX instance_group_policy_policy_idx ON instance_group_policy (policy);
CREATE TABLE instance_group_member (
 created_at DATETIME,
 updated_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 instance_uuid VARCHAR(255),
 group_id INTEGER NOT NULL,
 PRIMARY KEY (id),
 FOREIGN KEY(group_id) REFERENCES instance_groups (id)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX instance_group_member_instance_idx ON instance_group_member (instance_uuid);
CREATE TABLE quota_classes (
 created_at DATETIME,
 updated_at DATETIME,
 id INTEGER NOT NULL AUTO_INCREMENT,
 class_name VARCHAR(255),
 resource VARCHAR(255),
 hard_limit INTEGER,
 PRIMARY KEY (id)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX quota_classes_class_name_idx ON quota_classes (class_name);
CREATE TABLE quotas (
 id INTEGER NOT NULL AUTO_INCREMENT,
 created_at DATETIME,
 updated_at DATETIME,
 project_id VARCHAR(255),
 resource VARCHAR(255) NOT NULL,
 hard_limit INTEGER,
 PRIMARY KEY (id),
 CONSTRAINT uniq_quotas0project_id0resource UNIQUE (project_id, resource)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE TABLE project_user_quotas (
 id INTEGER NOT NULL AUTO_INCREMENT,
 created_at DATETIME,
 updated_at DATETIME,
 user_id VARCHAR(255) NOT NULL,
 project_id VARCHAR(255) NOT NULL,
 resource VARCHAR(255) NOT NULL,
 hard_limit INTEGER,
 PRIMARY KEY (id),
 CONSTRAINT uniq_project_user_quotas0user_id0project_id0resource UNIQUE (user_id, project_id, resource)
 )ENGINE=InnoDB CHARSET=utf8;
CREATE INDEX project_user_quotas_project_id_idx ON project_user_quotas (project_id);
CREATE INDEX project_user_quotas_user_id_idx ON project_user_quotas (user_id);

-- revision b30f573d3377
ALTER TABLE build_requests DROP COLUMN vm_state;
ALTER TABLE build_requests DROP COLUMN access_ip_v6;
ALTER TABLE build_requests DROP COLUMN config_drive;
ALTER TABLE build_requests DROP COLUMN locked_by;
ALTER TABLE build_requests DROP COLUMN security_groups;
ALTER TABLE build_requests DROP COLUMN progress;
ALTER TABLE build_requests DROP COLUMN info_cache;
ALTER TABLE build_requests DROP COLUMN display_name;
ALTER TABLE build_requests DROP COLUMN instance_metadata;
ALTER TABLE build_requests DROP COLUMN image_ref;
ALTER TABLE build_requests DROP COLUMN key_name;
ALTER TABLE build_requests DROP COLUMN user_id;
ALTER TABLE build_requests DROP COLUMN access_ip_v4;
ALTER TABLE build_requests DROP COLUMN task_state;
ALTER TABLE build_requests DROP COLUMN request_spec_id;

-- revision cdeec0c85668
