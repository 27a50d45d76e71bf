"""What becomes of servers in a whole cloud, with simulated hosts; a folder for each behaviour."""
