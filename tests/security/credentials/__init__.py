"""As whom services are called. Each promise of SECURITY.md, and the tests that hold it:

- A token that was revoked, or whose roles were removed, uses nothing that its user names: `test_revoked_tokens`.
- What such a request began is undone, and nothing of it is left: `test_revoked_tokens`.
- A header that names a token elsewhere does not make requests without a token: `test_revoked_tokens`.
- Accepted work outlives its token, for what was checked and for nothing else, also after a takeover: `test_accepted_work`.
- An id that a user wrote into a volume's metadata is named by that user, too: `test_ids_of_users`.
- Every call to another service says as whom it is made, and why that may be: `test_as_whom`.
- A revoked token is let through no longer than the option says, and by default for a minute: `test_bound`.
"""
