"""What a server wants of a host's hardware, and whether it fits: pure functions, used by API, scheduler and computes.

- `cpus`: lists of CPUs as text. `numa_request`, `pci_request`, `requests`: from flavor and image to a request.
- `port_devices`: what ports ask for, and what the network service gets to know of their devices.
- `fit`: a server's NUMA cells and devices on a host's; `cpu_fit`, `page_fit`, `pci_fit`: its parts.
- `host`: what of a host's hardware is for guests, by the configuration.
"""
