"""Makes the data that a guest reads about itself. Its config drive and the metadata service have the same data.

- `facts`: `ServerFacts` holds all input. Whoever makes a config drive or answers a guest gathers it.
- `versions`: the versions (dates) that guests request, and the files of each.
- `openstack`: the files under ``openstack/``; `network_data` and `devices` make parts of them.
- `ec2`: the tree under ``ec2/``.
- `config_drive`: all of that as the files of a drive.

No module here calls another service. The formats are Nova's ("Metadata service" in the user guide of Compute).
"""
