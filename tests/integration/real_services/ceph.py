"""A small real Ceph: one monitor, one manager and one OSD on a sparse file, as processes of the test. It keeps no data safe.

::

    ceph = Ceph(directory, address)      # two at once: two directories
    ceph.start()                         # pools images, volumes, vms and the accounts of ACCOUNTS; some ten seconds
    ceph.run("rbd", "ls", "vms")         # as its administrator; run("rbd", ..., account="cinder") as another account
    ceph.configuration("cinder")         # a ceph.conf of a client, which names the account's keyring
    ceph.key("cinder"), ceph.monitors    # the same, for libvirt
    ceph.freeze(); ceph.thaw()           # storage that does not answer, and answers again
    ceph.kill_monitor(); ceph.start_monitor(); ceph.move_monitor()
    ceph.stop()                          # its data stays: start() finds it again

``address`` is one that the guests' hosts reach: QEMU opens images itself, in the network namespace of its host, where 127.0.0.1
is another machine. Hosts of `machines.Machines` reach ``Machines.address``; those of a mere `Lab` reach a `storage_network`.

What it needs is installed by scripts/install-ceph.sh; see `missing`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_lowercase

from tests.ports import free_block
from tests.process_trees import stop

POOLS = ("images", "volumes", "vms")
#: account -> what it may do with objects. Each has the monitor's and the manager's `profile rbd`, which lets it put a dead client
#: on the blocklist.
ACCOUNTS = {
    "glance": "profile rbd pool=images",
    "cinder": "profile rbd pool=volumes, profile rbd-read-only pool=images",
    "compute": "profile rbd pool=vms, profile rbd pool=volumes, profile rbd-read-only pool=images",
}
_PROGRAMS = ("ceph-mon", "ceph-mgr", "ceph-osd", "ceph", "rbd", "ceph-authtool", "monmaptool")
# For a call that waits for the cluster.
_PATIENCE = 120.0
# A monitor has two ports; the others take theirs from the rest.
_PORTS = 50
_MEMORY = 900 * 2**20


def missing() -> str | None:
    """What keeps this machine from running one, in one sentence; None if nothing does."""
    lacks = [name for name in _PROGRAMS if shutil.which(name) is None]
    return f"needs {', '.join(lacks)}: run scripts/install-ceph.sh as root" if lacks else None


@dataclass
class Ceph:
    """See the module. ``size_gib``: of its OSD; the file has only what is written to it."""

    directory: Path
    address: str
    size_gib: int = 40
    fsid: str = field(default_factory=lambda: str(uuid.uuid4()))
    _ports: range = field(default_factory=lambda: free_block(_PORTS))
    _monitor: int = 0
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def monitors(self) -> list[tuple[str, str]]:
        """Address and port of each, now; of messenger v1, as Cinder says it."""
        return [(self.address, str(self._ports[2 * self._monitor + 1]))]

    def start(self) -> None:
        """Serves when this returns. The first time it is made."""
        is_new = not (self.directory / "made").exists()
        if is_new:
            self._make()
        self.start_monitor()
        if is_new:
            osd = str(uuid.uuid4())
            self.run("ceph", "osd", "new", osd)
            self._daemon("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd)
        self._start("ceph-osd", "0")
        self._start("ceph-mgr", "x")
        if is_new:
            self._make_pools()
            (self.directory / "made").touch()
        self._await_pools()

    def _await_pools(self) -> None:
        for pool in POOLS:
            # Answers when the pool serves.
            self.run("rbd", "ls", pool)

    def stop(self) -> None:
        """Also one that is frozen."""
        for name in reversed(list(self._running)):
            process = self._running.pop(name)
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)

    def freeze(self) -> None:
        """Whoever reads or writes waits from now on."""
        stop(self._running["ceph-osd"].pid)

    def thaw(self) -> None:
        """Serves again when this returns."""
        self._running["ceph-osd"].send_signal(signal.SIGCONT)
        # Its right to answer reads has ended meanwhile. With nobody to renew it, it would wait for ever: so it joins anew.
        self.run("ceph", "osd", "down", "0")
        self._await_pools()

    def kill_monitor(self) -> None:
        """SIGKILL. Who is connected works on; nobody else gets in."""
        process = self._running.pop("ceph-mon")
        process.kill()
        process.wait(10)

    def start_monitor(self) -> None:
        self._start("ceph-mon", self._monitor_name)

    def move_monitor(self) -> None:
        """To other ports, in steps that no client notices: another monitor joins, then this one leaves.

        The clients' configurations say where it is; what was copied from them before is old.
        """
        old, was = self._monitor_name, self._running.pop("ceph-mon")
        monmap = self.directory / "monmap"
        self.run("ceph", "mon", "getmap", "-o", str(monmap))
        self._monitor += 1
        self._make_monitor(monmap)
        self._start("ceph-mon", self._monitor_name, "--public-addrv", self._monitor_address())
        end = time.monotonic() + _PATIENCE
        while self._monitor_name not in json.loads(self.run("ceph", "quorum_status"))["quorum_names"]:
            assert time.monotonic() < end, "the new monitor does not join"
        self.run("ceph", "mon", "remove", old)
        was.terminate()
        was.wait(20)
        self._write_configurations()
        self.run("rbd", "ls", POOLS[0])

    def configuration(self, account: str) -> Path:
        """A ceph.conf, as it lies on a machine of the account's."""
        return self.directory / f"{account}.conf"

    def keyring(self, account: str) -> Path:
        return self.directory / f"client.{account}.keyring"

    def key(self, account: str) -> str:
        name = f"client.{account}"
        return _run("ceph-authtool", str(self.keyring(account)), "--name", name, "--print-key").strip()

    def run(self, *command: str, account: str = "admin", within: float = _PATIENCE) -> str:
        """What the program says. Raises AssertionError with what it said if it fails, and TimeoutExpired."""
        return _run(*command, within=within, CEPH_CONF=str(self.configuration(account)), CEPH_ARGS=f"--id {account}")

    # making it

    def _make(self) -> None:
        for folder in ("mgr", "osd", "logs"):
            (self.directory / folder).mkdir(parents=True, exist_ok=True)
        self._write_keys()
        self._write_configurations()
        monmap = str(self.directory / "monmap")
        first = ("--addv", self._monitor_name, self._monitor_address())
        _run("monmaptool", "--create", "--clobber", "--fsid", self.fsid, *first, monmap)
        self._make_monitor(Path(monmap))

    def _make_monitor(self, monmap: Path) -> None:
        (self.directory / f"mon-{self._monitor_name}").mkdir()
        options = ("--mkfs", "--monmap", str(monmap), "--keyring", str(self.directory / "keyring"))
        self._daemon("ceph-mon", "-i", self._monitor_name, *options)

    def _write_keys(self) -> None:
        """Of all accounts and daemons: the monitor takes them from the file with which it is made."""
        everything = {"mon": "allow *", "osd": "allow *", "mgr": "allow *", "mds": "allow *"}
        caps = {
            "mon.": {"mon": "allow *"},
            "client.admin": everything,
            "osd.0": {"mon": "allow profile osd", "mgr": "allow profile osd", "osd": "allow *"},
            "mgr.x": {"mon": "allow profile mgr", "osd": "allow *", "mds": "allow *"},
        }
        for account, may in ACCOUNTS.items():
            caps[f"client.{account}"] = {"mon": "profile rbd", "mgr": "profile rbd", "osd": may}
        files = {"osd.0": self.directory / "osd/keyring", "mgr.x": self.directory / "mgr/keyring"}
        together = self.directory / "keyring"
        for number, (name, allowed) in enumerate(caps.items()):
            file = files.get(name, self.directory / f"{name}.keyring")
            options = [word for kind, may in allowed.items() for word in ("--cap", kind, may)]
            _run("ceph-authtool", "--create-keyring", str(file), "--gen-key", "-n", name, *options)
            file.chmod(0o600)
            if number == 0:
                shutil.copy(file, together)
            else:
                _run("ceph-authtool", str(together), "--import-keyring", str(file))

    @property
    def _monitor_name(self) -> str:
        return ascii_lowercase[self._monitor]

    def _monitor_address(self) -> str:
        first = self._ports[2 * self._monitor]
        return f"[v2:{self.address}:{first},v1:{self.address}:{first + 1}]"

    def _write_configurations(self) -> None:
        shared = {
            "fsid": self.fsid,
            "mon_host": self._monitor_address(),
        }
        daemons = {
            **_DAEMONS,
            "public_addr": self.address,
            "cluster_addr": self.address,
            "ms_bind_port_min": str(self._ports[10]),
            "ms_bind_port_max": str(self._ports[-1]),
            "log_file": f"{self.directory}/logs/$name.log",
            "mon_cluster_log_file": f"{self.directory}/logs/cluster.log",
            "mon_data": f"{self.directory}/mon-$id",
            "mgr_data": f"{self.directory}/mgr",
            "osd_data": f"{self.directory}/osd",
            "bluestore_block_size": str(self.size_gib * 2**30),
        }
        (self.directory / "daemons.conf").write_text(_text(shared | daemons))
        for account in ("admin", *ACCOUNTS):
            client = {"keyring": str(self.keyring(account)), "log_file": "", "admin_socket": ""}
            self.configuration(account).write_text(_text(shared | client))

    def _make_pools(self) -> None:
        # Each call of the program costs a second; it reads more than one command from its input.
        commands = [f"osd pool create {pool} 8" for pool in POOLS]
        commands += [f"osd pool application enable {pool} rbd" for pool in POOLS]
        commands += ["osd set-require-min-compat-client nautilus"]
        done = subprocess.run(
            ["ceph"],
            input="\n".join(commands) + "\n",
            text=True,
            capture_output=True,
            timeout=_PATIENCE,
            env=_environment(CEPH_CONF=str(self.configuration("admin"))),
        )
        assert done.returncode == 0 and "Error" not in done.stderr, done.stderr

    def _daemon(self, program: str, *arguments: str) -> None:
        _run(program, "-c", str(self.directory / "daemons.conf"), *arguments)

    def _start(self, program: str, name: str, *more: str) -> None:
        with (self.directory / "logs" / f"{program}.out").open("ab") as output:
            self._running[program] = subprocess.Popen(
                [program, "-f", "-i", name, "-c", str(self.directory / "daemons.conf"), *more],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=_environment(),
                start_new_session=True,
            )


# Without logs of single operations, without replicas, and without waiting for other monitors, which there are none of.
_DAEMONS = {
    "auth_cluster_required": "cephx",
    "auth_service_required": "cephx",
    "auth_client_required": "cephx",
    "auth_allow_insecure_global_id_reclaim": "false",
    "admin_socket": "",
    "osd_crush_chooseleaf_type": "0",
    "osd_pool_default_size": "1",
    "osd_pool_default_min_size": "1",
    "osd_pool_default_pg_autoscale_mode": "off",
    "mon_allow_pool_size_one": "true",
    "mon_max_pg_per_osd": "1000",
    "mon_warn_on_pool_no_redundancy": "false",
    "mon_data_avail_warn": "2",
    "mon_data_avail_crit": "1",
    "paxos_propose_interval": "0.02",
    "paxos_min_wait": "0.01",
    "mon_mgr_beacon_grace": "60",
    "rocksdb_cache_size": str(32 * 2**20),
    "mon_osd_cache_size": "10",
    "mgr_initial_modules": "",
    "osd_objectstore": "bluestore",
    "osd_memory_target": str(_MEMORY),
    "osd_memory_cache_min": str(64 * 2**20),
    "osd_op_num_shards": "2",
    "osd_op_num_threads_per_shard": "1",
}


@contextmanager
def storage_network(address: str, namespaces: Iterable[str]) -> Iterator[None]:
    """A bridge of this machine with ``address`` (of a /24 that is not used), which the network namespaces reach."""
    prefix, _, own = address.rpartition(".")
    bridge = f"ceph{own}-{prefix.rpartition('.')[2]}"
    # A test that was killed may have left them.
    _delete_links(bridge)
    _run("ip", "link", "add", bridge, "type", "bridge")
    try:
        _run("ip", "addr", "add", f"{address}/24", "dev", bridge)
        _run("ip", "link", "set", bridge, "up")
        free = (number for number in range(1, 255) if str(number) != own)
        for namespace, number in zip(namespaces, free, strict=False):
            port = f"{bridge}-{number}"
            _run("ip", "link", "add", port, "type", "veth", "peer", "name", "ceph0", "netns", namespace)
            _run("ip", "link", "set", port, "master", bridge, "up")
            _run("ip", "-n", namespace, "addr", "add", f"{prefix}.{number}/24", "dev", "ceph0")
            _run("ip", "-n", namespace, "link", "set", "ceph0", "up")
        yield
    finally:
        _delete_links(bridge)


def _delete_links(bridge: str) -> None:
    """A bridge and its ports; they may be there or not."""
    for path in sorted(Path("/sys/class/net").glob(f"{bridge}*"), reverse=True):
        subprocess.run(["ip", "link", "delete", path.name], capture_output=True, timeout=_PATIENCE)


def _text(options: dict[str, str]) -> str:
    return "[global]\n" + "".join(f"{name} = {value}\n" for name, value in options.items())


def _environment(**more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin", "LANG": "C.UTF-8", "HOME": "/nonexistent", **more}


def _run(*command: str, within: float = _PATIENCE, **environment: str) -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=within,
        stdin=subprocess.DEVNULL,
        env=_environment(**environment),
    )
    assert done.returncode == 0, f"{' '.join(command)}: {(done.stdout + done.stderr)[-2000:]}"
    return done.stdout
