"""Moves of servers whose guest is not there: of a dead host, shelved, or never made. The guest is made anew at the target."""
