"""Orders for the guest of one server on the host where it is. `guest` is what all share; else a file per concern."""
