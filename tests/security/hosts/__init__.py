"""What a compromised compute host gets, and what it can send to others.

| promise | test |
|---|---|
| no message on a cell's queue has a token, whatever administrators and members do | `test_no_tokens` |
| a host that gets a token all the same does not use it | `tests/unit/rpc/test_rpc_calls.py` |
| what carries a move is ours, and nothing of it is used without the source's digest | `test_images_of_moves` |
| no host asks another one anywhere but at its address, or takes more than a flavor allows | `test_offers` |
| who sends without end is stopped where what it announced ends | `test_endless_data` |
| the account of hosts lists no projects and no users, and is no administrator | `test_accounts_of_hosts` |
"""
