"""Live and near-live migration, inside a cell and across cells."""
