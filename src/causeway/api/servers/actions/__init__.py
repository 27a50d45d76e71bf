"""Actions of servers (``POST /servers/{server_id}/action``), and the URLs of consoles."""
