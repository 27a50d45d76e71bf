"""Block Storage v3: volumes that are real sparse files, their attachments and snapshots."""
