"""A small key manager: the part of Barbican's API that castellan's client uses."""
