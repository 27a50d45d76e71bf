"""The steps of moves. Each file has the steps of one phase or one kind of move."""
