"""Resources of other services that the Compute API passed on until 2.35 (images' metadata until 2.38, actions until 2.43).

Old clients still ask for them. Each is a translation: the caller's own token goes with the call, so the other service decides
what they may see and do, beside the policy rules here. From 2.36 on they are 404, as in the field.
"""
