"""Makes Neutron's tables without its migrations: ``neutron_schema.py URL``. Run with the services' own interpreter."""

import runpy
import sys
from pathlib import Path

import sqlalchemy as sa
from neutron.db import migration
from neutron.db.migration.models import head
from neutron.db.models.securitygroup_default_rules import SecurityGroupDefaultRule
from sqlalchemy.orm import Session

# The one migration that fills a table. Without its rules a new security group lets nothing out.
DEFAULT_RULES = "alembic_migrations/versions/2023.2/expand/c33da356b165_security_group_default_rules.py"

engine = sa.create_engine(sys.argv[1])
head.get_metadata().create_all(engine)
rules = runpy.run_path(str(Path(migration.__file__).parent / DEFAULT_RULES))["default_template_rules"]
with Session(engine) as session, session.begin():
    session.add_all(SecurityGroupDefaultRule(**rule) for rule in rules)
