"""The documents are built as a site."""
