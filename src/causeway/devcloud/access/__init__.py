"""Who may call, and what they find: tokens, roles, passwords, the catalog. Every service looks here."""
