"""Quotas: what a project may have, and what it has, by the databases, by Placement, or by the identity service's limits."""
