"""A hypervisor made of small real files: for tests, and for hundreds of hosts on one machine.

What a guest wrote is in a file, which moves, stays or is lost as a real disk would, so a test can check whether data survived.
What a real hypervisor refuses is refused here. A simulated host survives the death of its process.

- `driver`: `SimulatedDriver`, and what it reports of its host. Its parts, each a subject of the driver interface:
  `power`, `moved_disks`, `devices`, `inside`, `volume_jobs`, `live`, `saved_memory`; `watched` is for tests
- `base`: what these parts share
- `host_files`: the files of a host; `disk`, `volume`, `firmware`: what is in them
- `guest`: what the hypervisor knows of a guest, and what happens when it boots; `activity`, `habits`: what it does while it runs
- `hardware`, `link`: what the host is made of; `serial`, `agent`: how its guests are talked to; `rounds`: warm copies
"""

from causeway.virt.simulated.driver import SimulatedDriver

__all__ = ["SimulatedDriver"]
