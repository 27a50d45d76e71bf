"""Makes the roles of a cloud from a configuration, for the embedded cloud (one process) and for `causeway ROLE` (many).

A module for each role, which imports what this role needs and nothing else: where a role runs, only its extra is installed.
"""
