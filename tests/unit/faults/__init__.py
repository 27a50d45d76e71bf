"""Nothing that a move or an operation does is without a point of injection by mistake."""
