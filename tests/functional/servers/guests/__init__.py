"""What guests have and show, and keep when they move: files, metadata, firmware, passwords, consoles."""
