"""A step fails, has to wait, or is late: the server is restored or its operation is tried again."""
