"""A real operating system, Debian 12 with cloud-init, on Causeway: what a user of a cloud image meets."""
