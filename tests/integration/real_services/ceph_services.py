"""Glance and Cinder on a real Ceph, and hosts that may open Cinder's volumes in it."""

from __future__ import annotations

import base64
import shutil
import uuid
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import libvirt

from tests.integration.real_services.ceph import Ceph
from tests.integration.real_services.configuration import Options
from tests.integration.real_services.guests import Networking, ServicesWithAgents
from tests.integration.real_services.machines import Machines, run

#: Cinder's backends, each with a type of volumes of its name
CEPH, NFS = "ceph", "nfs"
#: a host of the operator's who defined libvirt's secret; the others have a keyring
WITH_SECRET = "cell2-host1"


class CephServices(ServicesWithAgents):
    def __init__(self, directory: Path, machines: Machines, **options: Any) -> None:
        super().__init__(directory, machines, **options)
        self.ceph = Ceph(directory / "ceph", machines.address)
        self.secret_uuid = str(uuid.uuid4())
        self._machines = machines

    def start(self) -> None:
        self.ceph.start()
        for host in self._machines.addresses:
            self._let_in(host)
        super().start()

    def stop(self) -> None:
        super().stop()
        self.ceph.stop()

    def _let_in(self, host: str) -> None:
        """The host may open Cinder's volumes. It has files of Ceph's in a folder of its own."""
        folder = self.directory / f"ceph-of-{host}"
        folder.mkdir()
        run(*self._machines.inside(host), "mount", "--bind", str(folder), "/etc/ceph")
        if host != WITH_SECRET:
            shutil.copy(self.ceph.keyring("cinder"), folder / "ceph.client.cinder.keyring")
            return
        secret = ET.Element("secret", ephemeral="no", private="no")
        ET.SubElement(secret, "uuid").text = self.secret_uuid
        usage = ET.SubElement(secret, "usage", type="ceph")
        ET.SubElement(usage, "name").text = "client.cinder secret"
        connection = libvirt.open(self._machines.endpoints[host].uri)
        try:
            made = connection.secretDefineXML(ET.tostring(secret, encoding="unicode"))
            made.setValue(base64.b64decode(self.ceph.key("cinder")))
        finally:
            connection.close()

    def _glance(self) -> Options:
        options = {group: dict(values) for group, values in super()._glance().items()}
        # Cinder reads where an image is, and clones it.
        options["DEFAULT"] |= {
            "enabled_backends": "fs:file,ceph:rbd",
            "show_image_direct_url": "true",
            "show_multiple_locations": "true",
        }
        options["glance_store"] = {"default_backend": CEPH}
        options[CEPH] = {
            "rbd_store_ceph_conf": self.ceph.configuration("glance"),
            "rbd_store_user": "glance",
            "rbd_store_pool": "images",
        }
        return options

    def _cinder(self) -> Options:
        return {
            **super()._cinder(),
            CEPH: {
                "volume_driver": "cinder.volume.drivers.rbd.RBDDriver",
                "volume_backend_name": CEPH,
                "rbd_ceph_conf": self.ceph.configuration("cinder"),
                "rbd_user": "cinder",
                "rbd_pool": "volumes",
                "rbd_secret_uuid": self.secret_uuid,
                "rados_connect_timeout": 5,
                "rbd_exclusive_cinder_pool": "true",
            },
        }


ON_CEPH = Networking(Machines, CephServices)
