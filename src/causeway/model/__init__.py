"""What exists: plain typed dataclasses, their states and the transitions that are allowed.

Nothing here knows how it is stored, sent or shown. Everything can cross RPC as JSON (`msgspec` converts it by its types).
"""
