"""Every code of a finding, with its verdict and what to do about it. docs/adopting.md has the same table."""

from __future__ import annotations

from typing import NamedTuple

from causeway.adopt.check.findings import Finding, Kind, Subject, Verdict


class Code(NamedTuple):
    """``to_do``: the same for all findings of the code."""

    kind: Kind
    verdict: Verdict
    means: str
    to_do: str


_D, _H, _S, _O, _R = Kind.DEPLOYMENT, Kind.HOST, Kind.SERVER, Kind.OPTION, Kind.RULE
_DIFFERS, _BLOCKS = Verdict.DIFFERS, Verdict.BLOCKS

_SETTLE = "Wait until it ends, or settle it in Nova: nothing that is under way can be taken over."
_PLACEMENT = "Run `nova-manage placement heal_allocations` and `nova-manage placement audit` in Nova."
_VOLUME = "Detach the volume in Nova and attach it again, or run `nova-manage volume_attachment refresh`."
_OTHER_DISKS = "Move the server in Nova to a host with qcow2 files (by cold migration or shelving)."
_MAPPING = "Correct the mapping in Nova: `nova-manage cell_v2 verify_instance`, `map_instances`."
_LEAVE = "Its host can't be taken over with it: delete it, resize it, or move it to a host that stays with Nova."

CODES: dict[str, Code] = {
    # the deployment
    "cell_missing": Code(
        _D,
        _BLOCKS,
        "Causeway has no cell for one of Nova's",
        "Make one with the same uuid and new databases: `causeway manage cell create --uuid`; cell0: `causeway manage db sync`.",
    ),
    "guest_names": Code(
        _D,
        _DIFFERS,
        "guests are named by the number of their row",
        "Nothing: guests that are taken over keep their names.",
    ),
    "service_down": Code(
        _D,
        _DIFFERS,
        "a service that is not a compute does not report",
        "Delete its record if it is gone: `openstack compute service delete`.",
    ),
    "mapping_without_cell": Code(
        _D,
        _DIFFERS,
        "mappings of servers that were never built, without a build request",
        "Nothing: they are not taken over.",
    ),
    "mapping_without_server": Code(
        _D,
        _DIFFERS,
        "mappings of servers of which their cell has no record",
        "Nothing: they are not taken over.",
    ),
    "request_without_server": Code(
        _D,
        _BLOCKS,
        "builds that have no mapping of a cell yet",
        _SETTLE,
    ),
    "topology_unknown": Code(
        _D,
        _BLOCKS,
        "NUMA cells of a host in a form that is not known",
        "Use a release of Causeway that knows this release of Nova.",
    ),
    # hosts
    "host_unmapped": Code(
        _H,
        _BLOCKS,
        "a host without a mapping to its cell",
        "Run `nova-manage cell_v2 discover_hosts`.",
    ),
    "host_mapped_elsewhere": Code(
        _H,
        _BLOCKS,
        "a host that is mapped to another cell than the one with its records",
        "Delete the wrong mapping (`nova-manage cell_v2 delete_host`), then run `nova-manage cell_v2 discover_hosts`.",
    ),
    "host_twice": Code(
        _H,
        _BLOCKS,
        "a host with compute services in two cells",
        "Delete the service of the cell to which the host does not report any more.",
    ),
    "host_gone": Code(
        _H,
        _DIFFERS,
        "a mapping of a host that has neither service nor node",
        "Nothing: the mapping is not taken over.",
    ),
    "host_down": Code(
        _H,
        _BLOCKS,
        "a host with servers, whose nova-compute does not report",
        "Start nova-compute, or evacuate the servers: what is recorded of them may be old.",
    ),
    "empty_host_down": Code(
        _H,
        _DIFFERS,
        "a host without servers, whose nova-compute does not report",
        "Delete its service if the host is gone.",
    ),
    "service_missing": Code(
        _H,
        _BLOCKS,
        "a compute node without a compute service",
        "Start nova-compute there, or delete the node's record.",
    ),
    "service_old": Code(
        _H,
        _BLOCKS,
        "a nova-compute of an older release than others",
        "Finish the upgrade of Nova first.",
    ),
    "service_unfenced": Code(
        _H,
        _BLOCKS,
        "a nova-compute of before 2023.1, which would start beside Causeway",
        "Upgrade it to 2023.1 or later first; one start of nova-compute is enough.",
    ),
    "node_missing": Code(
        _H,
        _BLOCKS,
        "a compute service without a compute node",
        "Start nova-compute there, or delete its service.",
    ),
    "nodes_many": Code(
        _H,
        _BLOCKS,
        "a host with several compute nodes (Ironic, or a host that was renamed)",
        "Leave hosts of bare metal to Nova; delete the nodes of former names.",
    ),
    "hypervisor": Code(
        _H,
        _BLOCKS,
        "a hypervisor that is not QEMU or KVM",
        "Leave the host to Nova.",
    ),
    "evacuated_from": Code(
        _H,
        _BLOCKS,
        "a host that may still have guests that were evacuated from it",
        "Start nova-compute there: it destroys them. Two guests of one server would damage its disks.",
    ),
    "provider_missing": Code(
        _H,
        _BLOCKS,
        "a compute node that is no resource provider in Placement",
        "Restart nova-compute there, which makes it; if another provider has its name, correct that first.",
    ),
    "allocation_orphaned": Code(
        _H,
        _DIFFERS,
        "allocations of consumers that are no servers",
        "Run `nova-manage placement audit --delete`.",
    ),
    # servers, what they do
    "task": Code(_S, _BLOCKS, "a server with a task", _SETTLE),
    "building": Code(_S, _BLOCKS, "a server that is being built", _SETTLE),
    "verify_resize": Code(
        _S,
        _BLOCKS,
        "a server in VERIFY_RESIZE",
        "Confirm or revert the resize in Nova.",
    ),
    "migration_in_progress": Code(
        _S,
        _BLOCKS,
        "a server with a migration that has not ended",
        _SETTLE
        + " A migration that a dead service left behind is set to error: `openstack server migration abort`, or in the database.",
    ),
    "suspended": Code(
        _S,
        _DIFFERS,
        "a suspended server",
        "It can be resumed where it is; resume it before it is moved.",
    ),
    "rescued": Code(
        _S,
        _DIFFERS,
        "a rescued server",
        "It can be unrescued. Nova does not record its rescue image: a reboot takes the image of the server.",
    ),
    "state_unknown": Code(
        _S,
        _BLOCKS,
        "a server in a state that Causeway does not know",
        "Reset its state in Nova: `openstack server set --state`.",
    ),
    # servers, what they have
    "disk_encrypted": Code(_S, _BLOCKS, "a local disk that is encrypted", _LEAVE),
    "volume_encrypted": Code(
        _S,
        _BLOCKS,
        "an encrypted volume",
        "Detach it in Nova, and attach it after the server was taken over.",
    ),
    "image_type": Code(_S, _BLOCKS, "local disks that are not qcow2 files: raw, flat, lvm, rbd, ploop", _OTHER_DISKS),
    "tpm": Code(_S, _BLOCKS, "a TPM whose key is not in the key manager", _LEAVE),
    "tpm_key": Code(
        _S,
        _DIFFERS,
        "a TPM whose key is in the key manager",
        "Set [barbican] and [barbican_service_user]. Nobody has tried it with a server that was taken over: try one.",
    ),
    "vgpu": Code(_S, _BLOCKS, "a virtual GPU (mediated device)", _LEAVE),
    "pmem": Code(_S, _BLOCKS, "persistent memory", _LEAVE),
    "shares": Code(_S, _BLOCKS, "shares of Manila", "Detach the shares in Nova."),
    "accelerators": Code(_S, _BLOCKS, "accelerators of Cyborg", _LEAVE),
    "memory_encrypted": Code(_S, _BLOCKS, "encrypted memory (SEV)", _LEAVE),
    "attachment_unknown": Code(
        _S,
        _BLOCKS,
        "a volume without an attachment of its own (attached before Queens)",
        "Detach the volume in Nova and attach it again.",
    ),
    "attachment_missing": Code(_S, _BLOCKS, "a volume whose attachment Cinder does not know", _VOLUME),
    "attachment_of_another": Code(
        _S, _BLOCKS, "a volume whose attachment is another server's, or another volume's", _VOLUME
    ),
    "attachment_disconnected": Code(
        _S, _BLOCKS, "a volume that is not connected to a host, according to Cinder", _VOLUME
    ),
    "port_missing": Code(
        _S,
        _BLOCKS,
        "a port that Neutron does not have",
        "Detach it in Nova: `openstack server remove port`.",
    ),
    "port_host": Code(
        _S,
        _BLOCKS,
        "a port that is bound to another host than the server's",
        "Migrate the server, or reboot it hard in Nova, so that the port is bound where the server is.",
    ),
    "port_plug": Code(
        _S,
        _BLOCKS,
        "a port that Causeway's hosts can't plug",
        "Detach it in Nova, or bind it with another mechanism driver.",
    ),
    "allocation_missing": Code(_S, _BLOCKS, "a server without an allocation from its host's provider", _PLACEMENT),
    "allocation_elsewhere": Code(_S, _BLOCKS, "a server with an allocation from another host's provider", _PLACEMENT),
    # servers, what is recorded of them
    "host_unknown": Code(
        _S,
        _BLOCKS,
        "a server on a host that has no compute node or mapping in its cell",
        "Correct the record of the host (see its own findings), or evacuate the server.",
    ),
    "host_none": Code(
        _S,
        _BLOCKS,
        "a server in a state with a guest, and without a host",
        "Look where its guest is; reset its state in Nova.",
    ),
    "compute_id": Code(
        _S,
        _BLOCKS,
        "a server whose compute_id is not that of its host's node",
        "Restart nova-compute of its host, which corrects it.",
    ),
    "mapping_missing": Code(_S, _BLOCKS, "a server without a mapping", _MAPPING),
    "mapping_cell": Code(_S, _BLOCKS, "a server that is mapped to another cell than the one with its record", _MAPPING),
    "duplicate": Code(
        _S,
        _BLOCKS,
        "a server with records in two cells, none of them hidden",
        "Find out which of them is right, and delete the other one, in Nova's database.",
    ),
    "hidden": Code(
        _S,
        _BLOCKS,
        "a server whose record is hidden in the cell to which it is mapped",
        "Settle its cross-cell resize; if there is none, set instances.hidden to 0.",
    ),
    "hidden_copy": Code(
        _S,
        _DIFFERS,
        "a server with a hidden copy in another cell",
        "Nothing: only the record of its own cell is taken over.",
    ),
    "record_unknown": Code(
        _S,
        _BLOCKS,
        "a record in a form that is not known",
        "Use a release of Causeway that knows this release of Nova.",
    ),
    "record_missing": Code(
        _S,
        _BLOCKS,
        "a server without the record of its flavor",
        "Reboot it hard in Nova, or run `nova-manage db online_data_migrations`.",
    ),
    "request_spec_missing": Code(
        _S,
        _DIFFERS,
        "a server without a request spec",
        "Hints and zone that it was asked for with are not known: Nova has lost them, too.",
    ),
    "not_imported": Code(
        _S,
        _BLOCKS,
        "a server that an import leaves out for another reason",
        "The finding says what it waits for.",
    ),
    # options and rules
    "option_differs": Code(_O, _DIFFERS, "an option that means something else", ""),
    "option_without_effect": Code(_O, _DIFFERS, "an option without effect that matters", ""),
    "option_to_add": Code(
        _O,
        _DIFFERS,
        "an option that Causeway needs and the file does not have",
        "Add it to Causeway's file: `causeway adopt host-config` does.",
    ),
    "option_refused": Code(_O, _BLOCKS, "a value with which no role starts", "Change it in Causeway's file."),
    "rule_unknown": Code(_R, _DIFFERS, "a rule of the policy that nothing asks", "Leave it out of Causeway's policy."),
    "rules_broken": Code(_R, _BLOCKS, "a policy file that can't be read", "Correct it: no role starts with it."),
}


def found(subject: Subject, code: str, what: str) -> Finding:
    known = CODES[code]
    return Finding(subject, known.verdict, code, what, known.to_do)


__all__ = ["CODES", "Code", "found"]
