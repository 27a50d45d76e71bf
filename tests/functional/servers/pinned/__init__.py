"""NUMA cells, pinned CPUs, huge pages and PCI devices."""
