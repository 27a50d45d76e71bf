"""The audit finds what records, hosts and services disagree about, and repairs it."""
