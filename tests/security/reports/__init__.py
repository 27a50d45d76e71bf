"""A compromised compute reports what it likes: nothing of others changes, and nothing of others fails.

| promise | test |
|---|---|
| a token of an own move opens no migration of another one: neither counters nor a status of it change | `test_other_moves` |
| what no host can have is refused whole, before anything of it is recorded, and logged once | `test_absurd_reports` |
| while a host reports that, hypervisors, statistics and status are read, and servers are built | `test_absurd_hosts` |
| bytes that no transfer has are not counted, so that the progress of others is written | `test_absurd_reports` |
| where `[console] host_networks` are listed, proxies get no other address | `test_console_addresses`, `test_absurd_hosts` |
"""
