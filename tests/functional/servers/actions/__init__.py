"""What users and operators do to servers outside of moves: power, states, images, rebuild."""
