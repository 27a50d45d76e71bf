#!/bin/sh
# Installs the Debian packages that Causeway's set-up, tests and real guests need, as far as they are missing.
# Quick and silent when all is there. Without root it says what is missing and goes on.
# "install-packages.sh --servers": also the servers, switches and the browser that some tests start for themselves. Not installed
# otherwise, because Debian starts servers at once.
# "install-packages.sh --services": also what the real services around need on their hosts.
# "install-packages.sh --os": also what builds an image of Debian and logs in to it.
set -eu

if ! command -v apt-get >/dev/null 2>&1; then
    echo "install-packages: no apt-get here, so nothing is installed; the names of Debian's packages are in this script."
    exit 0
fi

packages="
    make git ca-certificates
    python3 python3-venv python3-dev gcc libc6-dev pkg-config libvirt-dev
    qemu-system-x86 qemu-utils libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients libxml2-utils
    ovmf swtpm swtpm-tools systemd-boot-efi binutils mtools
    busybox-static zstd extlinux genisoimage
    novnc
    dnsmasq-base iproute2 iputils-ping tcpdump mount util-linux e2fsprogs
    strace
"
case "${1:-}" in
--servers | --services)
    packages="$packages postgresql mariadb-server rabbitmq-server openvswitch-switch
    iptables haproxy ethtool iputils-arping radvd
    chromium chromium-driver"
    ;;
esac
[ "${1:-}" != --services ] || packages="$packages ovn-central ovn-host"
[ "${1:-}" != --os ] || packages="$packages mmdebstrap fdisk openssh-client"

missing=""
for package in $packages; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done
account=yes
getent passwd libvirt-qemu >/dev/null || account=no

[ -z "$missing" ] && [ "$account" = yes ] && exit 0
if [ "$(id -u)" != 0 ]; then
    echo "install-packages: not root, so these stay missing (real guests may not run):$missing" \
        "$([ "$account" = yes ] || echo 'account libvirt-qemu')"
    exit 0
fi

if [ -n "$missing" ]; then
    export DEBIAN_FRONTEND=noninteractive
    echo "install-packages: installing$missing"
    # The package lists of this machine may do; if not, or if they are too old, they are fetched.
    # shellcheck disable=SC2086
    if ! apt-get install -q -y --no-install-recommends $missing >/dev/null 2>&1; then
        apt-get update -q
        apt-get install -q -y --no-install-recommends $missing
    fi
fi

# The account that the package libvirt-daemon-system makes. libvirtd refuses to start guests without it; the package itself
# would bring systemd and services that run at once.
getent group kvm >/dev/null || groupadd -r kvm
getent group libvirt-qemu >/dev/null || groupadd -r libvirt-qemu
getent passwd libvirt-qemu >/dev/null ||
    useradd -r -g kvm -G libvirt-qemu -d /var/lib/libvirt -s /usr/sbin/nologin libvirt-qemu
