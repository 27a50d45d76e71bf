"""A compromised compute answers what it likes: nothing of other servers changes, and the conductor keeps working.

| promise | test |
|---|---|
| each type of answer is compared with its order, or any value of it is harmless | `test_believed_answers` |
| volumes, attachments, ports, images, servers and hosts that an order is not about are not recorded | `test_believed_answers` |
| what a host says of a volume's connection goes to no other host | `test_believed_answers` |
| any JSON as an answer or an error is refused or used, and never breaks what reads it | `test_any_json` |
| a host that lies in every answer harms no server, volume, port or image of others | `test_lying_hosts` |
"""
