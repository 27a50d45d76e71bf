#!/bin/sh
# Runs once, in a virtual machine that builds the image: /dev/vda is the image, /dev/vdb a tar archive of its boot files.
# A boot loader is installed here, in a guest, because that needs a mounted file system: no root rights and no loop
# devices are needed on the machine that builds.
mkdir -p /disk
tries=0
while [ ! -b /dev/vda1 ] && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
mount -t ext4 /dev/vda1 /disk && tar -x -f /dev/vdb -C /disk && extlinux --install /disk/boot/extlinux \
    && sync && umount /disk && echo IMAGE-INSTALLED
poweroff -f
