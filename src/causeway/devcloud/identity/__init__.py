"""Identity v3: accounts, rights and the catalog."""
