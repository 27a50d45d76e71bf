"""Stores on PostgreSQL and MariaDB."""
