"""A host is dead for good: work continues without it, and it is cleaned when it is back."""
