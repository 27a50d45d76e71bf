"""What a compromised compute host gets, and what it can send to others.

| promise | test |
|---|---|
| no message on a cell's queue has a token, whatever administrators and members do | `test_no_tokens` |
| a host that gets a token all the same does not use it | `tests/unit/rpc/test_rpc_calls.py` |
| what carries a move is ours, and nothing of it is used without the source's digest | `test_images_of_moves` |
| no host asks another one anywhere but at its address, or takes more than a flavor allows | `test_offers` |
| who sends without end is stopped where what it announced ends | `test_endless_data` |
| a host that reports the node or the name of another host is refused, where that is known | `test_nodes_are_refused` |
| where it is not, nobody takes the one host for the other | `test_nodes_of_others` |
| the account of hosts lists no projects and no users, and is no administrator | `test_accounts_of_hosts` |
"""
