"""Identity v3: who may do what, and where the services are."""
