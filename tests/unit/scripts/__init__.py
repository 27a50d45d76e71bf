"""What `make` calls beside the package: checks, the audit of dependencies, and what measures coverage."""
