"""A hypervisor made of small real files: for tests and for hundreds of hosts on one machine.

What a guest wrote is in a file and moves, is kept or is lost as a real disk would be, so a test can check whether data
survived. What a real hypervisor refuses is refused here. Nothing is synced to the medium: a simulated host survives the
death of its process, not the loss of power.

- `disk`: root disks: what they were made from and the lines their guest wrote
- `volume`: lines a guest writes to an attached volume, which is a file of any size and content
- `guest`: what is known of a guest, and what happens when it boots
- `host_files`: what a host keeps of its guests and their disks
- `driver`: `SimulatedDriver`
"""

from causeway.virt.simulated.driver import SimulatedDriver

__all__ = ["SimulatedDriver"]
