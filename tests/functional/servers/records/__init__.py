"""What records, lists and usage say of servers that move, at any moment and afterwards."""
