"""Attacks, each with the promise of SECURITY.md that it must not break. The manual of each folder names the test of each promise.

| folder | what an attacker has, and sends |
|---|---|
| `images` | a project: images whose content is not what their record says, disks too large, files of volumes |
| `credentials` | a token that was revoked: ids of other projects; and as whom every call to another service is made |
| `strangers` | a project: ports, attachments and addresses that name servers of others |
| `bindings` | nothing: the network service wants a port plugged as hosts do not plug |
| `requests` | the API, a browser, a terminal: repeated parameters, forms, frames, chunks, arguments |
| `answers` | a compute host: any answer to the conductor |
| `reports` | a compute host: what it reports of itself, its guests and devices |
| `hosts` | a compute host: its account, what it reads on the queue, images and offers of moves |
| `definitions` | a compute host: definitions of guests, memory, firmware and addresses for other hosts |

`journeys` has what users do with a server meanwhile.
"""
