"""Decides what hardware a server requests of a host, and whether it fits. Pure functions, for API, scheduler and computes.

- `cpus` reads and writes lists of CPUs. `numa_request`, `pci_request` and `requests` make a request from flavor and image.
- `port_devices` makes the requests of ports, and describes their devices for the network service.
- `fit` assigns a server's NUMA cells to those of a host; `cpu_fit`, `page_fit` and `pci_fit` assign CPUs, memory and devices.
- `host` chooses the hardware of a host that guests may use, by the configuration.
- `firmware`, `guest_devices` and `image_properties` read and check what flavor and image say of a guest's virtual hardware.
"""
