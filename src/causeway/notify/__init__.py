"""Versioned notifications: what happened to servers and resources, sent to whoever listens, in the field's form.

`payloads` and `instance_payloads` build the payloads from our dataclasses; `notifier` sends it. Names, versions and fields
of payloads are those of the Compute service's notification objects.
"""
