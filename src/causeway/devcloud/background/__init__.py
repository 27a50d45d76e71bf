"""What goes on behind the requests, on threads of its own."""
