"""Services as processes of their own, with real message queues."""
