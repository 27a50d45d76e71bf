"""Resources of other services that the Compute API passed on until 2.35 (images' metadata until 2.38, actions until 2.43).

Old clients still ask for them. Requests are translated and passed on with the caller's own token: beside the policy rules here,
the other service decides what the caller may see and do. From 2.36 on they are 404, as in Nova.
"""
