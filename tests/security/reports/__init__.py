"""A compromised compute reports what no host has: nothing of it is recorded, and the rest of the cloud does not fail.

| promise | test |
|---|---|
| a report with a value that no host has is refused as a whole, and says which value | `test_reports` |
| the host is heard again as soon as it reports what can be | `test_reports` |
"""
