"""Ids that others may write: that a thing of theirs names a server proves nothing.

| what is found by such an id | what decides instead | test |
|---|---|---|
| a server's ports, by `device_id` | the port's project, or the server's record | `test_ports` |
| ports that were made for a server, by their description | the same | `test_ports` |
| a guest, by its address | the port's project | `tests/functional/metadata/test_who_asks.py` |
| a server's volumes, by attachments in its name | the server's record | `test_other_ids` |
"""
