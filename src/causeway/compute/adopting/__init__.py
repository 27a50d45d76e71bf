"""A host that Nova had: it is looked at, taken and released.

Two compute services must never own one host. `ownership` decides between Nova's and Causeway's: files, changed in an order in
which a death at any point leaves at most one owner. `service` runs the compute service as long as the host is Causeway's.
"""
