"""The hosts of the lab: one libvirtd for each, in mount, host name and network namespaces of its own, on one machine.

::

    lab = Lab(state_dir / "lab")
    endpoints = lab.start(["cell1-host1", "cell2-host1"])
    driver = driver_of(endpoints["cell1-host1"])     # causeway.virt.lab.drivers
    ...
    lab.stop(keep_guests=True)

Everything that a host keeps is in ``root_dir/hosts/NAME``. Only the network namespaces and one symbolic link in /run/causeway are
elsewhere (the path of a Unix socket may have 107 characters, that of a state directory more). Their names come from ``root_dir``,
so that one machine can have several labs. Hosts are not children of the control plane: they and their guests keep running when it
ends, and `Lab.start` finds them again.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from causeway import durable
from causeway.errors import GuestFailed
from causeway.virt.lab.certificates import Authority
from causeway.virt.lab.commands import process_runs
from causeway.virt.lab.network import LabNetwork, NetworkAgent

_SHORT_LINKS = Path("/run/causeway")
_LIBVIRT_FOLDERS = ("/run/libvirt", "/var/lib/libvirt", "/var/cache/libvirt", "/var/log/libvirt", "/etc/libvirt")
_START_SECONDS = 15.0
_STOP_SECONDS = 15.0

# Guests run as root (a container has no other account), without cgroups and security driver.
_QEMU_CONF = """user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
security_driver = "none"
security_default_confined = 0
namespaces = [ ]
cgroup_controllers = [ ]
seccomp_sandbox = 0
stdio_handler = "file"
max_core = 0
default_tls_x509_cert_dir = "/etc/libvirt/pki"
default_tls_x509_verify = 1
keepalive_interval = 5
keepalive_count = 3
"""
# Where each host sees its own certificates.
_PKI = "/etc/libvirt/pki"


@dataclass
class LibvirtEndpoint:
    """How to reach a lab host. ``network_agent`` is for the driver of this host."""

    host: str
    uri: str
    netns: str
    # On the underlay, where only the hosts reach each other.
    address: str
    instances_dir: Path
    network_agent: NetworkAgent
    # The file in which the drivers of a lab keep whether KVM works.
    probe_cache: Path
    # This host's part of the machine. Memory (MiB) and disk (GiB) are divided among the hosts, vCPUs are not.
    vcpus: int
    memory_mb: int
    local_gb: int
    # Of its libvirtd. Other hosts can be reached only from libvirtd's namespaces.
    pid_file: Path
    # The folder in which its libvirt keeps the state of TPMs.
    swtpm: Path
    # The URI of its libvirtd for other hosts; %s: the address.
    control_uri: str = f"qemu+tls://%s/system?pkipath={_PKI}"

    def inside(self) -> list[str]:
        """The words to put before a command so that it runs on the host, with the host's network and files."""
        pid = process_runs(self.pid_file, "libvirtd")
        if pid is None:
            raise GuestFailed(f"The hypervisor of lab host {self.host} does not run.")
        return ["nsenter", "--target", str(pid), "--net", "--mount"]


class Lab:
    """The hosts and the network of one lab. Needs root, and what `missing` says."""

    def __init__(self, root_dir: Path) -> None:
        self.root_dir = root_dir.resolve()
        self._digest = hashlib.sha256(str(self.root_dir).encode()).hexdigest()[:8]
        self._short = _SHORT_LINKS / self._digest
        self.network = LabNetwork(f"cw{self._digest}", self.root_dir / "network")

    def start(self, hosts: list[str]) -> dict[str, LibvirtEndpoint]:
        """Starts the hosts that don't run, and finds those that do, with their guests. Raises `GuestFailed`."""
        if reason := missing():
            raise GuestFailed(reason)
        self.root_dir.mkdir(parents=True, exist_ok=True)
        _SHORT_LINKS.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            self._short.unlink()
        self._short.symlink_to(self.root_dir)
        self.network.start(hosts)
        addresses = self.network.addresses(hosts)
        for host in hosts:
            self._start_host(host, addresses[host])
        self._write_names(addresses)
        for host in hosts:
            self._wait_until_ready(host)
        return {host: self._endpoint(host, addresses[host], len(hosts)) for host in hosts}

    def stop(self, *, keep_guests: bool) -> None:
        """Closes everything (``keep_guests``: the hosts keep running), or ends hosts, guests and networks. Disks stay."""
        if keep_guests:
            return
        for folder in self._host_folders():
            self._stop_host(folder)
        self.network.stop()
        with suppress(FileNotFoundError):
            self._short.unlink()

    def _folder(self, host: str) -> Path:
        return self.root_dir / "hosts" / host

    def _host_folders(self) -> list[Path]:
        return sorted(path for path in (self.root_dir / "hosts").glob("*") if path.is_dir())

    def _socket(self, host: str) -> Path:
        return self._short / "hosts" / host / "run" / "libvirt-sock"

    def _endpoint(self, host: str, address: str, count: int) -> LibvirtEndpoint:
        folder = self._folder(host)
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20
        return LibvirtEndpoint(
            host=host,
            uri=f"qemu+unix:///system?socket={self._socket(host)}",
            netns=self.network.namespace(host),
            address=address,
            instances_dir=folder / "instances",
            network_agent=self.network.agent(host),
            probe_cache=self.root_dir / "virt-type.json",
            vcpus=os.cpu_count() or 1,
            memory_mb=memory // count,
            local_gb=max(1, shutil.disk_usage(folder).free // 2**30 // count),
            pid_file=folder / "libvirtd.pid",
            swtpm=folder / "lib" / "swtpm",
        )

    def _start_host(self, host: str, address: str) -> None:
        folder = self._folder(host)
        # libvirt needs a second to find out what QEMU can do. The hosts share the result.
        cache = self.root_dir / "cache"
        for path in (cache, *(folder / name for name in ("run", "lib", "log", "etc/qemu", "instances"))):
            path.mkdir(parents=True, exist_ok=True)
        if not (folder / "cache").is_symlink():
            (folder / "cache").symlink_to(cache)
        for place in _LIBVIRT_FOLDERS:
            Path(place).mkdir(parents=True, exist_ok=True)
        if process_runs(folder / "libvirtd.pid", "libvirtd"):
            return
        self._write_configuration(folder, address)
        # The socket of a killed libvirtd would be taken for that of the new one.
        with suppress(FileNotFoundError):
            (folder / "run" / "libvirt-sock").unlink()
        script = files("causeway.virt.lab").joinpath("host_init.py")
        command = ["ip", "netns", "exec", self.network.namespace(host)]
        command += ["unshare", "--mount", "--uts", "--propagation", "private"]
        command += [sys.executable, "-I", str(script), str(folder), host]
        command += [
            "/usr/sbin/libvirtd",
            "--listen",
            "-f",
            "/etc/libvirt/libvirtd.conf",
            "-p",
            str(folder / "libvirtd.pid"),
        ]
        with (folder / "log" / "host.log").open("ab") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/"
            )
        # It shall outlive this process, which does not wait for it.
        process.returncode = 0

    def _write_names(self, addresses: dict[str, str]) -> None:
        """Writes the names of all hosts into the file that each host has as its /etc/hosts. Running hosts see it at once."""
        for folder in self._host_folders():
            names = [f"127.0.0.1 localhost {folder.name}"]
            names += [f"{address} {host}" for host, address in sorted(addresses.items()) if host != folder.name]
            (folder / "hosts").write_text("\n".join(names) + "\n")

    def _write_configuration(self, folder: Path, address: str) -> None:
        identity = folder / "uuid"
        try:
            found = durable.read(identity, lambda content: uuid.UUID(content.decode().strip()))
        except durable.Torn:
            found = None
        if found is None:
            found = uuid.uuid4()
            durable.write(identity, str(found))
        (folder / "etc" / "qemu.conf").write_text(_QEMU_CONF)
        (folder / "hosts").touch()
        Authority(self.root_dir / "pki").ensure(folder.name, address, folder / "etc" / "pki")
        (folder / "resolv.conf").write_text("")
        (folder / "etc" / "libvirtd.conf").write_text(
            'auth_unix_rw="none"\nauth_unix_ro="none"\nunix_sock_rw_perms="0700"\n'
            'log_outputs="2:file:/var/log/libvirt/libvirtd.log"\n'
            f'host_uuid="{found}"\n'
            f'listen_tls=1\nlisten_tcp=0\nlisten_addr="{address}"\nauth_tls="none"\n'
            f'key_file="{_PKI}/server-key.pem"\ncert_file="{_PKI}/server-cert.pem"\nca_file="{_PKI}/ca-cert.pem"\n'
        )

    def _wait_until_ready(self, host: str) -> None:
        """Waits until libvirtd answers. Its socket exists before its drivers are loaded, and one of these may still end it."""
        log = self._folder(host) / "log" / "libvirtd.log"
        uri = f"qemu+unix:///system?socket={self._socket(host)}"
        attempts = Retrying(
            retry=retry_if_exception_type(GuestFailed), wait=wait_fixed(0.05), stop=stop_after_delay(_START_SECONDS)
        )
        try:
            attempts(_answers, uri)
        except RetryError as error:
            raise GuestFailed(
                f"The hypervisor of lab host {host} did not start within {_START_SECONDS:.0f} s.",
                details=log.read_text(errors="replace")[-2000:] if log.exists() else "",
            ) from error

    def _stop_host(self, folder: Path) -> None:
        """Ends a host and kills its guests. Whoever wants them to shut down properly stops them first."""
        processes = _processes_of(folder, Path("/run/netns") / self.network.namespace(folder.name))
        handles = []
        try:
            for pid in processes.inits:
                with suppress(ProcessLookupError):
                    handles.append(os.pidfd_open(pid))
            _signal(processes.inits, signal.SIGTERM)
            _signal(processes.guests, signal.SIGKILL)
            if not _all_ended(handles):
                _signal(processes.daemons + processes.inits, signal.SIGKILL)
        finally:
            for handle in handles:
                os.close(handle)
        with suppress(FileNotFoundError):
            (folder / "libvirtd.pid").unlink()


def _answers(uri: str) -> None:
    import libvirt

    libvirt.registerErrorHandler(lambda _context, _error: None, None)
    try:
        libvirt.open(uri).close()
    except libvirt.libvirtError as error:
        raise GuestFailed(str(error)) from error


@dataclass
class _Processes:
    """The process ids of a host: its first process (several, if one was killed), libvirtd, guests."""

    inits: list[int] = field(default_factory=list)
    daemons: list[int] = field(default_factory=list)
    guests: list[int] = field(default_factory=list)


def _processes_of(folder: Path, network: Path) -> _Processes:
    """The processes of a host, found by its folder in their command lines, whoever started them.

    A guest on a volume has no file in that folder: guests are found by the host's ``network`` namespace, too.
    """
    found = _Processes()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        pid, program = int(path.parent.name), Path(words[0]).name
        if program.startswith("qemu-system"):
            if any(f"{folder}/" in word for word in words) or _is_in(network, pid):
                found.guests.append(pid)
        elif program == "libvirtd" and str(folder / "libvirtd.pid") in words:
            found.daemons.append(pid)
        elif any(word.endswith("/host_init.py") for word in words) and str(folder) in words:
            found.inits.append(pid)
    return found


def _is_in(namespace: Path, pid: int) -> bool:
    """Whether a process is in a network namespace. False: one of them is gone."""
    try:
        return namespace.samefile(f"/proc/{pid}/ns/net")
    except (FileNotFoundError, ProcessLookupError):
        return False


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _all_ended(handles: list[int]) -> bool:
    end = time.monotonic() + _STOP_SECONDS
    return all(select.select([handle], [], [], max(0.0, end - time.monotonic()))[0] for handle in handles)


def missing() -> str | None:
    """Why this machine can't be a lab, in one sentence; None: it can."""
    if os.geteuid() != 0:
        return "Real guests need root: the lab makes network namespaces and mounts."
    tools = ["qemu-system-x86_64", "qemu-img", "/usr/sbin/libvirtd", "dnsmasq", "ip", "ping", "unshare", "mount"]
    try:
        pwd.getpwnam("libvirt-qemu")
    except KeyError:
        return "Real guests need the account 'libvirt-qemu': run scripts/install-packages.sh as root."
    absent = [tool for tool in tools if not shutil.which(tool)]
    if absent:
        return f"Real guests need {', '.join(Path(tool).name for tool in absent)}: run scripts/install-packages.sh as root."
    modules = {"libvirt": "libvirt-python", "os_brick": "os-brick", "os_vif": "os-vif"}
    absent = [package for module, package in modules.items() if importlib.util.find_spec(module) is None]
    if absent:
        return f"Real guests need {', '.join(absent)}: install causeway with its extra 'libvirt'."
    return None
