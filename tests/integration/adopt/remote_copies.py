"""ssh and scp between the hosts, for Nova: it copies disks with them when a server moves inside of a cell.

The hosts are namespaces of one machine: ssh to another host is an ``nsenter`` here, without a daemon, keys and
accounts. The stand-ins understand what Nova says: ``ssh -o BatchMode=yes ADDRESS COMMAND...`` and ``scp [-C] -r FROM TO``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.integration.real_services.machine import Machine

_SSH = """\
#!/bin/sh
while [ "$1" = -o ]; do shift 2; done
pid=$(cat "{folder}/$1") || exit 255
shift
exec nsenter --target "$pid" --mount --uts --net -- "$@"
"""
# Each host's files are below the root of a process in its namespaces.
_SCP = """\
#!/bin/sh
while [ "$1" = -C ] || [ "$1" = -r ]; do shift; done
case $1 in
[0-9]*:*) pid=$(cat "{folder}/${{1%%:*}}") && exec cp -r --sparse=always "/proc/$pid/root${{1#*:}}" "$2" ;;
esac
pid=$(cat "{folder}/${{2%%:*}}") || exit 255
nsenter --target "$pid" --mount -- cp -r --sparse=always "/proc/$$/root$1" "${{2#*:}}"
"""


def write(machine: Machine, hosts: Mapping[str, Path]) -> None:
    """``hosts``: address -> the file with the id of a process in the host's namespaces."""
    folder = machine.directory / "state/hosts-by-address"
    folder.mkdir(parents=True)
    for address, pid_file in hosts.items():
        (folder / address).symlink_to(pid_file)
    for name, text in (("ssh", _SSH), ("scp", _SCP)):
        machine.write(f"bin/{name}", text.format(folder=folder), executable=True)
