"""An operation takes effect or leaves the server as it was, whatever fails; and nothing is left of a deleted server."""
