"""Servers and what belongs to them: states, records, answers, refusals."""
