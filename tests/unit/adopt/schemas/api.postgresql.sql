-- Nova's api database on postgresql, as the migrations of Nova 34 make it: tables that are read.
-- Written by python -m tests.integration.databases.nova_schemas

-- revision d67eeaabee36
CREATE TABLE cell_mappings (
 created_at TIMESTAMP WITHOUT TIME ZONE,
 updated_at TIMESTAMP WITHOUT TIME ZONE,
 id SERIAL NOT NULL,
 uuid VARCHAR(36) NOT NULL,
 name VARCHAR(255),
 transport_url TEXT,
 database_connection TEXT,
 disabled BOOLEAN,
 PRIMARY KEY (id),
 CONSTRAINT uniq_cell_mappings0uuid UNIQUE (uuid)
 );
CREATE INDEX uuid_idx ON cell_mappings (uuid);
CREATE TABLE host_mappings (
 created_at TIMESTAMP WITHOUT TIME ZONE,
 updated_at TIMESTAMP WITHOUT TIME ZONE,
 id SERIAL NOT NULL,
 cell_id INTEGER NOT NULL,
 host VARCHAR(255) NOT NULL,
 PRIMARY KEY (id),
 CONSTRAINT uniq_host_mappings0host UNIQUE (host),
 FOREIGN KEY(cell_id) REFERENCES cell_mappings (id)
 );
CREATE INDEX host_idx ON host_mappings (host);
CREATE TABLE instance_mappings (
 created_at TIMESTAMP WITHOUT TIME ZONE,
 updated_at TIMESTAMP WITHOUT TIME ZONE,
 id SERIAL NOT NULL,
 instance_uuid VARCHAR(36) NOT NULL,
 cell_id INTEGER,
 project_id VARCHAR(255) NOT NULL,
 queued_for_delete BOOLEAN,
 user_id VARCHAR(255),
 PRIMARY KEY (id),
 CONSTRAINT uniq_instance_mappings0instance_uuid UNIQUE (instance_uuid),
 FOREIGN KEY(cell_id) REFERENCES cell_mappings (id)
 );
CREATE INDEX instance_mappings_user_id_project_id_idx ON instance_mappings (user_id, project_id);
CREATE INDEX instance_uuid_idx ON instance_mappings (instance_uuid);
CREATE INDEX project_id_idx ON instance_mappings (project_id);
CREATE TABLE flavors (
 created_at TIMESTAMP WITHOUT TIME ZONE,
 updated_at TIMESTAMP WITHOUT TIME ZONE,
 name VARCHAR(255) NOT NULL,
 id SERIAL NOT NULL,
 memory_mb INTEGER NOT NULL,
 vcpus INTEGER NOT NULL,
 swap INTEGER NOT NULL,
 vcpu_weight INTEGER,
 flavorid VARCHAR(255) NOT NULL,
 rxtx_factor FLOAT,
 root_gb INTEGER,
 ephemeral_gb INTEGER,
 disabled BOOLEAN,
 is_public BOOLEAN,
 description TEXT,
 PRIMARY KEY (id),
 CONSTRAINT uniq_flavors0flavorid UNIQUE (flavorid),
 CONSTRAINT uniq_flavors0name UNIQUE (name)
 );
CREATE TABLE flavor_extra_specs (
 created_at TIMESTAMP WITHOUT TIME ZONE,
 updated_at TIMESTAMP WITHOUT TIME ZONE,
 id SERIAL NOT NULL,
 flavor_id INTEGER NOT NULL,
 key VARCHAR(255) NOT NULL,
 value VARCHAR(255),
 PRIMARY KEY (id),
 CONSTRAINT uniq_flavor_extra_specs0flavor_id0key UNIQUE (flavor_id, key),
 FOREIGN KEY(flavor_id) REFERENCES flavors (id)
 );
CREATE INDEX flavor_extra_specs_flavor_id_key_idx ON flavor_extra_specs (flavor_id, key);
CREATE TABLE flavor_projects (
 created_at TIMESTAMP WITHOUT TIME ZONE,
 updated_at TIMESTAMP WITHOUT TIME ZONE,
 id SERIAL NOT NULL,
 flavor_id INTEGER NOT NULL,
 project_id VARCHAR(255) NOT NULL,
 PRIMARY KEY (id),
 CONSTRAINT uniq_flavor_projects0flavor_id0project_id UNIQUE (flavor_id, project_id),
 FOREIGN KEY(flavor_id) REFERENCES flavors (id)
 );
CREATE TABLE request_specs (
 created_at TIMESTAMP WITHOUT TIME ZONE,
 updated_at TIMESTAMP WITHOUT TIME ZONE,
 id SERIAL NOT NULL,
 instance_uuid VARCHAR(36) NOT NULL,
 spec TEXT NOT NULL,
 PRIMARY KEY (id),
 CONSTRAINT uniq_request_specs0instance_uuid UNIQUE (instance_uuid)
 );
CREATE INDEX request_spec_instance_uuid_idx ON request_specs (instance_uuid);
CREATE TYPE build_requests0locked_by AS ENUM ('owner', 'admin');
CREATE TABLE build_requests (
 created_at TIMESTAMP WITHOUT TIME ZONE,
 updated_at TIMESTAMP WITHOUT TIME ZONE,
 id SERIAL NOT NULL,
 request_spec_id INTEGER,
 project_id VARCHAR(255) NOT NULL,
 user_id VARCHAR(255),
 display_name VARCHAR(255),
 instance_metadata TEXT,
 progress INTEGER,
 vm_state VARCHAR(255),
 task_state VARCHAR(255),
 image_ref VARCHAR(255),
 access_ip_v4 INET,
 access_ip_v6 INET,
 info_cache TEXT,
 security_groups TEXT,
 config_drive BOOLEAN,
 key_name VARCHAR(255),
 locked_by build_requests0locked_by,
 instance_uuid VARCHAR(36),
 instance TEXT,
 block_device_mappings TEXT,
 tags TEXT,
 PRIMARY KEY (id),
 CONSTRAINT uniq_build_requests0instance_uuid UNIQUE (instance_uuid)
 );
CREATE INDEX build_requests_instance_uuid_idx ON build_requests (instance_uuid);
CREATE INDEX build_requests_project_id_idx ON build_requests (project_id);
CREATE TYPE keypair_types AS ENUM ('ssh', 'x509');
CREATE TABLE key_pairs (
 created_at TIMESTAMP WITHOUT TIME ZONE,
 updated_at TIMESTAMP WITHOUT TIME ZONE,
 id SERIAL NOT NULL,
 name VARCHAR(255) NOT NULL,
 user_id VARCHAR(255) NOT NULL,
 fingerprint VARCHAR(255),
 public_key TEXT,
 type keypair_types DEFAULT 'ssh' NOT NULL,
 PRIMARY KEY (id),
 CONSTRAINT uniq_key_pairs0user_id0name UNIQUE (user_id, name)
 );
CREATE TABLE aggregates (
 created_at TIMESTAMP WITHOUT TIME ZONE,
 updated_at TIMESTAMP WITHOUT TIME ZONE,
 id SERIAL NOT NULL,
 uuid VARCHAR(36),
 name VARCHAR(255),
 PRIMARY KEY (id),
 CONSTRAINT uniq_aggregate0name UNIQUE (name)
 );
CREATE INDEX aggregate_uuid_idx ON aggregates (uuid);
CREATE TABLE aggregate_hosts (
 created_at TIMESTAMP WITHOUT TIME ZONE,
 updated_at TIMESTAMP WITHOUT TIME ZONE,
 id SERIAL NOT NULL,
 host VARCHAR(255),
 aggregate_id INTEGER NOT NULL,
 PRIMARY KEY (id),
 CONSTRAINT uniq_aggregate_hosts0host0aggregate_id UNIQUE (host, aggregate_id),
 FOREIGN KEY(aggregate_id) REFERENCES aggregates (id)
 );
CREATE TABLE aggregate_metadata (
 created_at TIMESTAMP WITHOUT TIME ZONE,
 updated_at TIMESTAMP WITHOUT TIME ZONE,
 id SERIAL NOT NULL,
 aggregate_id INTEGER NOT NULL,
 key VARCHAR(255) NOT NULL,
 value VARCHAR(255) NOT NULL,
 PRIMARY KEY (id),
 CONSTRAINT uniq_aggregate_metadata0aggregate_id0key UNIQUE (aggregate_id, key),
 FOREIGN KEY(aggregate_id) REFERENCES aggregates (id)
 );
CREATE INDEX aggregate_metadata_key_idx ON aggregate_metadata (key);
CREATE TABLE instance_groups (
 created_at TIMESTAMP WITHOUT TIME ZONE,
 updated_at TIMESTAMP WITHOUT TIME ZONE,
 id SERIAL NOT NULL,
 user_id VARCHAR(255),
 project_id VARCHAR(255),
 uuid VARCHAR(36) NOT NULL,
 name VARCHAR(255),
 PRIMARY KEY (id),
 CONSTRAINT uniq_instance_groups0uuid UNIQUE (uuid)
 );
CREATE TABLE instance_group_policy (
 created_at TIMESTAMP WITHOUT TIME ZONE,
 updated_at TIMESTAMP WITHOUT TIME ZONE,
 id SERIAL NOT NULL,
 policy VARCHAR(255),
 group_id INTEGER NOT NULL,
 rules TEXT,
 PRIMARY KEY (id),
 FOREIGN KEY(group_id) REFERENCES instance_groups (id)
 );
CREATE INDEX instance_group_policy_policy_idx ON instance_group_policy (policy);
CREATE TABLE instance_group_member (
 created_at TIMESTAMP WITHOUT TIME ZONE,
 updated_at TIMESTAMP WITHOUT TIME ZONE,
 id SERIAL NOT NULL,
 instance_uuid VARCHAR(255),
 group_id INTEGER NOT NULL,
 PRIMARY KEY (id),
 FOREIGN KEY(group_id) REFERENCES instance_groups (id)
 );
CREATE INDEX instance_group_member_instance_idx ON instance_group_member (instance_uuid);
CREATE TABLE quota_classes (
 created_at TIMESTAMP WITHOUT TIME ZONE,
 updated_at TIMESTAMP WITHOUT TIME ZONE,
 id SERIAL NOT NULL,
 class_name VARCHAR(255),
 resource VARCHAR(255),
 hard_limit INTEGER,
 PRIMARY KEY (id)
 );
CREATE INDEX quota_classes_class_name_idx ON quota_classes (class_name);
CREATE TABLE quotas (
 id SERIAL NOT NULL,
 created_at TIMESTAMP WITHOUT TIME ZONE,
 updated_at TIMESTAMP WITHOUT TIME ZONE,
 project_id VARCHAR(255),
 resource VARCHAR(255) NOT NULL,
 hard_limit INTEGER,
 PRIMARY KEY (id),
 CONSTRAINT uniq_quotas0project_id0resource UNIQUE (project_id, resource)
 );
CREATE TABLE project_user_quotas (
 id SERIAL NOT NULL,
 created_at TIMESTAMP WITHOUT TIME ZONE,
 updated_at TIMESTAMP WITHOUT TIME ZONE,
 user_id VARCHAR(255) NOT NULL,
 project_id VARCHAR(255) NOT NULL,
 resource VARCHAR(255) NOT NULL,
 hard_limit INTEGER,
 PRIMARY KEY (id),
 CONSTRAINT uniq_project_user_quotas0user_id0project_id0resource UNIQUE (user_id, project_id, resource)
 );
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
