"""How an operation is requested: written, accepted or refused, and on whose behalf it then works.

- `asking`: writes an operation and notifies a conductor; `of_servers`: what that needs. `acceptance`: when a request counts.
- `requesters`: the user for whom an operation works, also when another conductor takes it over.
- `checked`: accepted work uses only what its user was allowed to have.
"""
