"""The cloud stops, dies or loses its journal or its power in the middle of a move, and starts again."""
