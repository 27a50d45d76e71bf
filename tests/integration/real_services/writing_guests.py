"""Guests that write to a volume without an end, and what of it is in the volume's files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from causeway.virt.libvirt.commands import run
from tests.functional.processes.own_process import until
from tests.integration.real_services.guests import GuestCloud

# A program of the guest that numbers sectors of its volume, one after the other, and says so when each is written.
FIRST_SECTOR, SECTOR = 2048, 512
NUMBERS_SECTORS = f"""\
#!/bin/sh
until [ -b /dev/vdb ]; do sleep 0.2; done
(n=0; while sleep 0.3; do
    echo "sector $n" | dd of=/dev/vdb bs={SECTOR} seek=$(({FIRST_SECTOR}+n)) conv=sync,fsync 2>/dev/null && echo WROTE n=$n
    n=$((n+1))
done) > /dev/console &
"""


def sectors_written(cloud: GuestCloud, server: Any) -> int:
    """How many the guest says that it has written since its latest boot."""
    said = cloud.member.compute.get_server_console_output(server.id)["output"].rpartition("CAUSEWAY-GUEST ")[2]
    numbers = re.findall(r"WROTE n=(\d+)", said)
    return int(numbers[-1]) + 1 if numbers else 0


def writes_on(cloud: GuestCloud, server: Any) -> int:
    """Waits until the guest has written more. Returns how many sectors it had written before."""
    before = sectors_written(cloud, server)
    until(lambda: sectors_written(cloud, server), lambda now: now > before, "the guest to write on")
    return before


def file_of(cloud: GuestCloud, server: Any) -> Path:
    """The file of the volume in the running guest, in the directory that its storage exports."""
    (disk,) = [disk for disk in re.findall(r"<disk .*?</disk>", cloud.definition(server), re.S) if "'vdb'" in disk]
    name = Path(re.findall(r"<source file='([^']+)'", disk)[0]).name
    (found,) = [path for storage in cloud.services.storage for path in cloud.services.export(storage).glob(name)]
    return found


def check_sectors(file: Path, number: int, directory: Path) -> None:
    """The first ``number`` sectors of the guest are in the volume, whatever files it consists of."""
    raw = directory / "content"
    run("qemu-img", "convert", "-O", "raw", file, raw, timeout=120)
    with raw.open("rb") as content:
        content.seek(FIRST_SECTOR * SECTOR)
        found = [content.read(SECTOR).rstrip(b"\0").decode() for _sector in range(number)]
    raw.unlink()
    assert found == [f"sector {each}\n" for each in range(number)]
