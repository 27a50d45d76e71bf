"""Drains: many servers moved off a scope by a plan; pace, windows, holds, crashes."""
