"""The clients of services: what they send and make of answers, on devcloud."""
