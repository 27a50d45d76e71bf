"""Versioned notifications: what happened to servers and resources, told to whoever listens, in the field's form.

`payloads` and `instance_payloads` build what is told from our dataclasses; `notifier` sends it. Names, versions and fields
of payloads are those of the Compute service's notification objects.
"""
