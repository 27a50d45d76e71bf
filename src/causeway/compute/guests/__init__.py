"""Orders for the guest of one server on its host. `guest` has what all files share."""
