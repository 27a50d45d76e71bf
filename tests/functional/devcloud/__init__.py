"""devcloud: Identity, Image, Network and Block Storage of the embedded cloud."""
