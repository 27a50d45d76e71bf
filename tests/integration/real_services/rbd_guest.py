"""A process that has an RBD image open for writing, as QEMU has it for a guest: ``rbd_guest.py CONF USER POOL IMAGE``.

It says ``open``. A line ``write OFFSET HEX`` is written to the image, a line ``discard OFFSET BYTES`` discarded, and a line
``grow BYTES`` makes it that large; it says ``done``, or the errno of what failed.
"""

from __future__ import annotations

import sys

from causeway.virt.libvirt.storage.rbd import bindings


def main() -> None:
    rados, rbd = bindings.load("rados"), bindings.load("rbd")
    conf, user, pool, name = sys.argv[1:]
    cluster = rados.Rados(conffile=conf, rados_id=user)
    cluster.connect()
    with cluster.open_ioctx(pool) as images, rbd.Image(images, name) as image:
        print("open", flush=True)
        for line in sys.stdin:
            try:
                match line.split():
                    case ["grow", size]:
                        image.resize(max(int(size), image.size()))
                    case ["write", offset, *content]:
                        image.write(bytes.fromhex("".join(content)), int(offset))
                    case ["discard", offset, size]:
                        image.discard(int(offset), int(size))
                image.flush()
            except rbd.OSError as error:
                print(error.errno, flush=True)
            else:
                print("done", flush=True)


main()
