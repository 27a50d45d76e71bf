"""What is found below a server: its addresses, interfaces, metadata, tags, volumes, history."""
