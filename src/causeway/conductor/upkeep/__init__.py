"""The periodic work of a conductor, and the recovery of work that other conductors have abandoned."""
