"""The model: plain typed dataclasses, their states and the allowed transitions.

Nothing here depends on how it is stored, sent or shown. Everything can be sent over RPC as JSON (`msgspec` converts it by its
types).
"""
