"""Views: pure functions that turn records into the JSON of the Compute API, for the request's version and links."""
