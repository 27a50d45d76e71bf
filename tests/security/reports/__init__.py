"""A compromised compute reports what it likes: nothing of others changes, and nothing of others fails.

| promise | test |
|---|---|
| a token of an own move opens no migration of another one: neither counters nor a status of it change | `test_other_moves` |
"""
