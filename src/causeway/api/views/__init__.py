"""Views: pure functions from what exists to the JSON of the Compute API, given the request's version and links."""
