"""A move is carried out, rolled back or refused, whatever fails, and its server is whole."""
