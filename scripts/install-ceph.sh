#!/bin/sh
# Installs what a small Ceph needs, and QEMU's driver for it, as far as it is missing: for the integration tests (Debian 12).
# Quick and silent when all is there. No service starts: Debian's need systemd and a configuration.
set -eu

packages="ceph-mon ceph-mgr ceph-osd ceph-common python3-rados python3-rbd qemu-block-extra"
missing=""
for package in $packages; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done
if [ -n "$missing" ]; then
    if [ "$(id -u)" != 0 ]; then
        echo "install-ceph: not root, so these stay missing:$missing" >&2
        exit 1
    fi
    export DEBIAN_FRONTEND=noninteractive
    # Through smartmontools and others it wants parted, of the same version as libparted2: the newest would upgrade that
    # library under programs that use it.
    library=$(dpkg-query -W -f '${Version}' libparted2 2>/dev/null || true)
    parted=""
    [ -z "$library" ] || parted="parted=$library"
    echo "install-ceph: installing$missing"
    # shellcheck disable=SC2086
    if ! apt-get install -q -y --no-install-recommends $missing $parted >/dev/null 2>&1; then
        apt-get update -q
        # The archive has no such old version any more: then the library is upgraded.
        # shellcheck disable=SC2086
        apt-get install -q -y --no-install-recommends $missing $parted || apt-get install -q -y --no-install-recommends $missing
    fi
fi

# The bindings are on no index of packages; Debian's are for Debian's Python, and the services' drivers for Ceph import them.
services=.venv-services/bin/python
cd "$(dirname "$0")/.."
[ -x "$services" ] || exit 0
folder=$("$services" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
suffix=$("$services" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
for name in rados rbd; do
    binding=/usr/lib/python3/dist-packages/$name$suffix
    if [ ! -e "$binding" ]; then
        echo "install-ceph: no $binding: .venv-services must be made with Debian's Python (/usr/bin/python3)" >&2
        exit 1
    fi
    ln -sf "$binding" "$folder/"
done
