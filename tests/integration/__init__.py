"""With real parts: guests, databases, browsers, services."""
