"""JSON schemas of bodies and query parameters, by microversion: lists of (first minor, last minor or None, schema)."""
