"""Makes Neutron's tables without its migrations: ``neutron_schema.py URL``. Run with the services' own interpreter."""

import sys

import sqlalchemy as sa
from neutron.db.migration.models import head

head.get_metadata().create_all(sa.create_engine(sys.argv[1]))
