"""What a conductor does from time to time, and what it takes up that others left."""
