"""What a guest reads about itself: the same from its config drive and from the metadata service.

- `facts`: `ServerFacts`, all that goes into it. Whoever makes a config drive or answers a guest gathers them.
- `versions`: the dates by which guests ask, and which files each has.
- `openstack`: the files under ``openstack/``; `network_data` and `devices` are parts of them.
- `ec2`: the tree under ``ec2/``.
- `config_drive`: all of it as the files of a drive.

Nothing here asks anybody. The formats are the field's ("Metadata service" in the user guide of Compute).
"""
