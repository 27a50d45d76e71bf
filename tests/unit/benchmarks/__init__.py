"""`causeway.benchmarks`."""
