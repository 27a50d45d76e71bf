"""Tests of Causeway; CONTRIBUTING.md says which folder has what."""
