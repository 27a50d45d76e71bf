"""Authentication for all services: tokens, roles, passwords, the catalog."""
