"""What happens behind the requests, on threads of its own."""
