"""The command line: ``causeway``."""
