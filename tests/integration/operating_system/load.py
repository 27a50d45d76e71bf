"""What keeps a guest busy while it is moved: it writes files, and says in a session which of them are on its disk."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from types import TracebackType

from tests.functional.servers.moves_cloud import until
from tests.integration.operating_system.debian_servers import Debian

# How many files the guest keeps.
_KEPT = 20
# Each file is named after its number and the sum of what was meant to be in it. It gets its name only when it is on the disk, and
# its name is reported only when that is there, too.
USER_DATA = f"""#cloud-config
write_files:
- path: /usr/local/bin/write-files
  permissions: '0755'
  content: |
    #!/bin/sh
    mkdir -p /data
    cd /data
    n=$(ls | sort -n | tail -n 1 | cut -d- -f1)
    while n=$((n + 1)); do
        sum=$(head -c 256K /dev/urandom | tee .new | sha256sum | cut -c1-64)
        sync .new
        mv .new "$n-$sum"
        rm -f "$((n - {_KEPT}))"-*
        sync .
        echo "$n-$sum" >> /run/written
        sleep 1
    done
- path: /etc/systemd/system/write-files.service
  content: |
    [Service]
    ExecStart=/usr/local/bin/write-files
    [Install]
    WantedBy=multi-user.target
runcmd:
- systemctl enable --now --no-block write-files
"""
# As the disk has it, not the memory: what the guest holds of files is discarded first.
_CHECK = """
sudo systemctl stop write-files
sync
echo 3 | sudo tee /proc/sys/vm/drop_caches > /dev/null
cd /data
sha256sum *-* | awk '{ split($2, part, "-"); print(part[2] == $1 ? "good" : "bad", $2) }'
sudo systemctl start --no-block write-files
"""


def check_files(debian: Debian, reported: Sequence[str] = ()) -> int:
    """Reads all files; returns how many there are. The guest must not have lost or changed one. It continues to write.

    ``reported``: those that it said to have written before.
    """
    found = {name: verdict for verdict, name in (line.split() for line in debian.run(_CHECK).splitlines())}
    assert set(found.values()) == {"good"}, found
    newest = max(map(_number, found))
    lost = {name for name in reported if _number(name) > newest - _KEPT} - found.keys()
    assert not lost, f"{sorted(lost)} of {sorted(found)}"
    return len(found)


def check_it_writes(debian: Debian) -> None:
    """Waits until it has written more files than it has now; it may have none yet."""

    def written() -> int:
        return int(debian.run("tail -n 1 /run/written | cut -d- -f1 | grep . || echo 0"))

    before = written()
    until(written, lambda now: now > before + 2, "the guest to write files")


def _number(name: str) -> int:
    return int(name.partition("-")[0])


class Session:
    """An SSH session in which the guest reports its files, over one TCP connection that is never made anew.

    ``reported``: the names of those that were written since the session began.
    """

    def __init__(self, debian: Debian) -> None:
        self._debian = debian
        self.reported: list[str] = []
        self._news = threading.Condition()

    def __enter__(self) -> Session:
        self._process = subprocess.Popen(
            self._debian.command("tail -n 0 --follow=name --retry /run/written"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, name="session", daemon=True)
        self._reader.start()
        self.check_it_continues()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def check_it_continues(self) -> None:
        """Waits until the guest has reported more files; it must have left nothing out."""
        with self._news:
            before = len(self.reported)
            assert self._news.wait_for(lambda: len(self.reported) >= before + 3, 120), "the session says nothing more"
            numbers = [_number(name) for name in self.reported]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert self._process.poll() is None

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._news:
                self.reported.append(line.strip())
                self._news.notify_all()
