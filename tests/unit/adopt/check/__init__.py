"""The check before a Nova is taken over: every finding, and every form of its report."""
