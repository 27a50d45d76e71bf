"""What the system metadata of a shelved server says, by Nova's keys."""

from __future__ import annotations

IMAGE, SINCE, HOST = "shelved_image_id", "shelved_at", "shelved_host"
# A key of ours: the server was off when it left its dead host.
WAS_OFF = "was_off"
