"""All payload objects of notifications, with their versions: none is added or changed without a look at this table.

Who does so compares the object with the sample of the notification in Nova (doc/notification_samples), and writes its version
here.
"""

from __future__ import annotations

import re
from pathlib import Path

from causeway import notify
from causeway.notify import drain_payloads
from causeway.notify.instance_payloads import Extra

FOLDER = Path(notify.__path__[0])
OF_NOVA = {
    "AggregateCachePayload": "1.0",
    "AggregatePayload": "1.1",
    "AuditPeriodPayload": "1.0",
    "BlockDevicePayload": "1.0",
    "CellMappingPayload": "2.0",
    "ComputeTaskPayload": "1.0",
    "DestinationPayload": "1.0",
    "ExceptionPayload": "1.1",
    "FlavorPayload": "1.4",
    "ImageMetaPayload": "1.0",
    "ImageMetaPropsPayload": "1.19",
    "InstanceActionPayload": "1.9",
    "InstanceActionRebuildPayload": "1.10",
    "InstanceActionRescuePayload": "1.4",
    "InstanceActionResizePrepPayload": "1.4",
    "InstanceActionSnapshotPayload": "1.10",
    "InstanceActionVolumePayload": "1.7",
    "InstanceActionVolumeSwapPayload": "1.9",
    "InstanceCreatePayload": "1.13",
    "InstanceExistsPayload": "2.1",
    "InstanceStateUpdatePayload": "1.0",
    "InstanceUpdatePayload": "2.1",
    "IpPayload": "1.0",
    "KeypairPayload": "1.0",
    "RequestSpecPayload": "1.1",
    "ServerGroupPayload": "1.1",
    "ServiceStatusPayload": "1.1",
}
# They have one version together.
OF_DRAINS = {"DrainPayload", "DrainServerPayload"}


def test_every_payload_object_and_its_version_are_in_the_table() -> None:
    text = "\n".join(file.read_text() for file in sorted(FOLDER.glob("*.py")))
    written = set(re.findall(r'"(\w+Payload)",\s*"(\d+\.\d+)"', text)) | {(Extra.name, Extra.version)}
    assert written == set(OF_NOVA.items())
    assert set(re.findall(r'"(\w+Payload)"', text)) - set(OF_NOVA) == OF_DRAINS
    assert drain_payloads._VERSION == "1.0"
