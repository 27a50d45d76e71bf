"""What keeps a guest busy while it is moved: files that are written all the time, and a session that stands all the time."""

from __future__ import annotations

import subprocess
import threading
from types import TracebackType

from tests.functional.servers.moves_cloud import until
from tests.integration.operating_system.debian_servers import Debian

# Each file is named after the sum of what was meant to be in it, and gets its name only when it is on the disk.
USER_DATA = """#cloud-config
write_files:
- path: /usr/local/bin/write-files
  permissions: '0755'
  content: |
    #!/bin/sh
    mkdir -p /data
    cd /data
    n=$(ls | wc -l)
    while n=$((n + 1)); do
        sum=$(head -c 256K /dev/urandom | tee .new | sha256sum | cut -c1-64)
        sync .new
        mv .new "$n-$sum"
        rm -f "$((n - 20))"-*
        echo "$n" > /run/written
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
sha256sum *-* | awk '{ split($2, part, "-"); print(part[2] == $1 ? "good" : $2) }' | sort | uniq -c
sudo systemctl start --no-block write-files
"""


def check_files(debian: Debian) -> int:
    """Reads all files; returns how many there are. The guest must not have lost or changed one. It continues to write."""
    found = [line.split() for line in debian.run(_CHECK).splitlines()]
    assert [name for _count, name in found] == ["good"], found
    return int(found[0][0])


def check_it_writes(debian: Debian) -> None:
    """Waits until it has written more files than it has now; it may have none yet."""

    def written() -> int:
        return int(debian.run("cat /run/written 2>/dev/null || echo 0"))

    before = written()
    until(written, lambda now: now > before + 2, "the guest to write files")


class Session:
    """An SSH session in which the guest counts, over one TCP connection that is never made anew."""

    def __init__(self, debian: Debian) -> None:
        self._debian = debian
        self._said: list[str] = []
        self._news = threading.Condition()

    def __enter__(self) -> Session:
        self._process = subprocess.Popen(
            self._debian.command("n=0; while sleep 0.5; do n=$((n + 1)); echo $n; done"),
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
        """Waits until the guest has said more; it must have left nothing out."""
        with self._news:
            before = len(self._said)
            assert self._news.wait_for(lambda: len(self._said) >= before + 3, 120), "the session says nothing more"
            assert self._said == [str(number) for number in range(1, len(self._said) + 1)]
        assert self._process.poll() is None

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._news:
                self._said.append(line.strip())
                self._news.notify_all()
