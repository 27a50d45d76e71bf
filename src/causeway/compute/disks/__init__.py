"""Disks on a host: base images, what servers are to have, what other hosts may fetch. Knows no guests."""
