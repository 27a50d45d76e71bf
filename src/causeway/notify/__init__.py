"""Versioned notifications of what happened to servers and resources, in Nova's form.

`payloads` and `instance_payloads` build payloads from our dataclasses; `notifier` and `sender` send them. Names, versions and
fields of payloads are those of the Compute service's notification objects.
"""
