"""The resources of the API, a module each: its handlers, and what answers look like where no other resource shows that.

Servers have a package of their own, `causeway.api.servers`.
"""
