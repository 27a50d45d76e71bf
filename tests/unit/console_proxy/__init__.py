"""`causeway.console_proxy`."""
