"""Tests of Causeway; CONTRIBUTING.md says which folder has what."""

# Before any module here imports oslo.messaging: it chooses the threads by which that waits.
import causeway as _causeway  # noqa: F401
