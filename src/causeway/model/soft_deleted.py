"""What the system metadata of a soft-deleted server says."""

from __future__ import annotations

# Since when, in ISO 8601.
SINCE = "soft_deleted_at"
