"""A guest that Tempest's scenarios can log in to: the lab's, with an ssh server and the commands that the scenarios give."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from causeway.virt.lab.guest_image import Additions, GuestImage, build_guest_image

_PACKAGES = ("dropbear-bin", "libtomcrypt1", "libtommath1")
_APPLETS = (
    "awk basename cmp curl dirname env false find free head hostname id ifconfig less ln lsmod mkdosfs mknod more mv "
    "nslookup pgrep pidof ping6 printenv readlink realpath rmdir route seq stat stty sysctl tee timeout tty udhcpc6 uniq "
    "uptime usleep vi which whoami xargs"
)
_MODULES = ("nls_base", "fat", "vfat", "nls_cp437", "nls_ascii", "nls_iso8859-1", "nls_utf8")

# Who logs in is root, with the key that the metadata service names, or the config drive.
_MORE = """\
#!/bin/sh
export PATH=/bin
for module in fat vfat nls_cp437 nls_ascii nls_iso8859-1 nls_utf8; do
    [ -f "/lib/$module.ko" ] && insmod "/lib/$module.ko" 2>/dev/null
done
mkdir -p /mnt /tmp /root/.ssh /dev/pts /etc/dropbear /var
ln -s /run /var/run
chmod 700 /root /root/.ssh
mount -t devpts devpts /dev/pts
echo 'root:x:0:0:root:/root:/bin/sh' > /etc/passwd
echo 'root:x:0:' > /etc/group
LD_LIBRARY_PATH=/opt/ssh dropbear -R -E -s -p 22 2>/dev/null
wait_for_name() {
    tries=0
    while [ ! -e /run/named ] && [ $tries -lt 60 ]; do sleep 1; tries=$((tries + 1)); done
}
keys=/root/.ssh/authorized_keys config=/config/openstack/latest/meta_data.json
service=http://169.254.169.254/latest/meta-data/public-keys/0/openssh-key
while [ ! -s $keys ]; do
    sed -n 's/.*"public_keys": *{"[^"]*": *"\\([^"\\\\]*\\).*/\\1/p' $config > /run/keys 2>/dev/null
    [ -s /run/keys ] || timeout 10 wget -q -O /run/keys $service 2>/dev/null
    # Who can log in finds the server's name.
    [ -s /run/keys ] && wait_for_name && mv /run/keys $keys
    chmod 600 $keys 2>/dev/null
    sleep 1
done
echo "CAUSEWAY-KEY $(cut -c 1-30 $keys)" > /dev/console
"""
_SCRIPTS = {
    "sudo": 'exec "$@"',
    "mkfs": 'for device in "$@"; do :; done\nexec mkdosfs "$device"',
    # of URL, and of "-X POST -d DATA URL"
    "curl": 'if [ "$1" = -X ]; then\n  exec wget -q -O - --post-data "$4" "$5"\nfi\nexec wget -q -O - "$1"',
    # of "-L LABEL -o device", for the labels of CD-ROMs
    "blkid": """\
for disk in /dev/sr* /dev/vd*; do
    [ -b "$disk" ] || continue
    dd "if=$disk" bs=1 skip=32808 count=32 2>/dev/null | grep -q "^$2 *" && echo "$disk" && exit 0
done
exit 2""",
    "lsblk": """\
printf '%-8s %7s %2s %14s %2s %s %s\\n' NAME MAJ:MIN RM SIZE RO TYPE MOUNTPOINTS
for disk in /sys/block/vd* /sys/block/sd* /sys/block/sr*; do
    [ -e "$disk" ] || continue
    name=${disk##*/} type=disk
    [ "${name#sr}" = "$name" ] || type=rom
    size=$(($(cat $disk/size) * 512))
    printf '%-8s %7s %2s %14s %2s %s\\n' "$name" "$(cat $disk/dev)" "$(cat $disk/removable)" "$size" "$(cat $disk/ro)" $type
done""",
}


def build(cache_dir: Path) -> GuestImage:
    """Built if ``cache_dir`` does not hold it. Debian's ssh server is fetched, and not installed on this machine."""
    unpacked = _unpack(cache_dir)
    files = {f"bin/{name}": f"#!/bin/sh\n{text}\n".encode() for name, text in _SCRIPTS.items()}
    files["more"] = _MORE.encode()
    files["bin/dropbear"] = (unpacked / "usr/sbin/dropbear").read_bytes()
    for path in _libraries(unpacked):
        # Not where busybox, which is linked statically, would find a C library that is not its own.
        files[f"opt/ssh/{path.name}" if path.name.startswith("lib") else f"lib64/{path.name}"] = (
            path.resolve().read_bytes()
        )
    applets = [name for name in _APPLETS.split() if name not in _SCRIPTS and name in _busybox()]
    return build_guest_image(cache_dir, Additions(files, _MODULES, applets))


def _unpack(cache_dir: Path) -> Path:
    folder = cache_dir / "ssh"
    if not (folder / "usr/sbin/dropbear").exists():
        folder.mkdir(parents=True, exist_ok=True)
        _run(["apt-get", "download", "-o", "APT::Sandbox::User=root", *_PACKAGES], folder)
        for package in sorted(folder.glob("*.deb")):
            _run(["dpkg", "-x", str(package), str(folder)], folder)
    return folder


def _libraries(unpacked: Path) -> list[Path]:
    own = unpacked / "usr/lib/x86_64-linux-gnu"
    said = _run(["env", f"LD_LIBRARY_PATH={own}", "ldd", str(unpacked / "usr/sbin/dropbear")], unpacked)
    return [Path(path) for path in re.findall(r"(/\S+) \(0x", said)]


def _busybox() -> set[str]:
    return set(_run(["busybox", "--list"], Path("/")).split())


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout
