"""What users change while their server moves is refused, or is there afterwards."""
