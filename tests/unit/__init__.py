"""Dense logic, by package of the code."""
