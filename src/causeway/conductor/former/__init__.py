"""What APIs and conductors of the former release ask for, or have left: it becomes operations of the journal."""
