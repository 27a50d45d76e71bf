"""Disks on a host: base images, the local disks that servers are to have, what other hosts may fetch. Knows no guests."""
