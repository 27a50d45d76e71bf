"""Every error that Causeway raises on purpose: one tree, each with an HTTP status and a stable code.

::

    CausewayError                     500  internal_error
    ├── BadRequest                    400  bad_request
    │   ├── ValidationFailed          400  validation_failed
    │   ├── FlavorNotUsable           400  flavor_not_usable
    │   ├── InvalidVolume             400  invalid_volume
    │   ├── ConsoleTypeUnavailable    400  console_type_unavailable
    │   └── MigrationNotFinished      400  no_finished_migration
    ├── Unauthorized                  401  unauthorized
    ├── Forbidden                     403  forbidden
    │   └── OverQuota                 403  over_quota
    ├── NotFound                      404  not_found
    │   ├── ServerNotFound            404  server_not_found
    │   └── ...NotFound               404  ..._not_found
    ├── VersionNotAcceptable          406  version_not_acceptable
    ├── Conflict                      409  conflict
    │   ├── InvalidState              409  invalid_state
    │   ├── StateChanged              409  state_changed
    │   │   ├── AcceptedMeanwhile     409  accepted_meanwhile     (other requests used up the quota at the same moment)
    │   │   ├── DevicesChanging       409  devices_changing       (a volume or port is being attached or detached)
    │   │   ├── RecordsClosed         409  records_closed         (the server's records are moving to another cell)
    │   │   ├── RequestChanged        409  request_changed        (the server that is being built was changed meanwhile)
    │   │   └── TakenOver             409  taken_over
    │   ├── ServerLocked              409  server_locked
    │   ├── CellDown                  409  cell_down
    │   └── ServiceDown               409  service_down
    ├── UnsupportedMediaType          415  unsupported_media_type
    ├── NotImplementedHere            501  not_implemented
    ├── NoSuchMethod                  500  no_such_method         (one of our services is of an older version)
    ├── Misconfigured                 500  misconfigured          (options, policy files: raised when a process starts)
    ├── DatabaseFailed                503  database_failed
    ├── QueryFailed                   500  query_failed           (of one request: the database itself answers)
    ├── ListIncomplete                500  list_incomplete        (cells do not answer, and their records may not be left out)
    └── OperationFailed               500  operation_failed       (seen in faults, not as an HTTP answer)
        ├── Cancelled                 500  move_cancelled         (by a user, or because it took too long)
        ├── NoValidHost               500  no_valid_host
        │   └── HostsSilent           500  hosts_silent           (all hosts of a cell fell silent together)
        ├── ClaimRefused              500  claim_refused          (an alternate host may take the server)
        │   └── DecryptionRefused     400  decryption_refused     (a host can't decrypt a volume, or gets no key)
        ├── UnexpectedFailure         500  unexpected_failure     (a mistake in the program, most likely)
        ├── Interrupted               500  interrupted            (the process that worked on it was stopped)
        ├── GuestFailed               500  guest_failed           (the hypervisor refused or broke)
        │   └── DiskInUse             500  disk_in_use            (in storage that several hosts share)
        ├── GuestRefused              500  guest_refused          (what another host sent of a guest is not accepted)
        ├── GuestStayed               500  guest_stayed           (a live migration failed: the guest is where it was)
        ├── GuestUnclear              500  guest_unclear          (which host owns a guest is unknown now; it is waited for)
        ├── GuestArrived              500  guest_arrived          (a rollback found the guest at its target: forward again)
        ├── CopyNotUsable             500  copy_not_usable        (so the other copy was not destroyed)
        ├── DiskTransferFailed        500  disk_transfer_failed
        │   └── DiskTransferBroken    500  disk_transfer_broken   (it broke off, or what came was damaged)
        ├── ImageRefused              500  image_refused          (an image or a disk is not what it was said to be)
        ├── WarmCopyImpossible        500  warm_copy_impossible   (the disks can be copied only while the guest is off)
        ├── Held                      500  held                   (a prepared move waits for its time)
        ├── HostUnreachable           500  host_unreachable       (one host can't connect to another)
        ├── HostNotTrusted            500  host_not_trusted       (hosts refuse each other's certificates)
        ├── SenderNotTrusted          500  sender_not_trusted     (a service of ours refuses another one's signature)
        ├── AnswerRefused             500  answer_refused         (a host's answer names what it was not asked about)
        ├── ReportRefused             500  report_refused         (a host reports of itself what can't be)
        ├── VifPluggingFailed         500  vif_plugging_failed
        ├── PortsDown                 500  ports_down             (a warning: nothing fails for it)
        ├── OperationUnderWay         500  operation_under_way    (on the same server: its end is waited for)
        ├── HostDown                  500  host_down              (a needed host does not report; it is waited for)
        ├── HostFenced                500  host_fenced            (an operator said that it is dead)
        ├── HostTooOld                500  host_too_old           (it does not know what it was asked)
        ├── ClaimsUnknown             500  claims_unknown         (a host asks which of its resources a server holds)
        ├── RpcTimeout                500  rpc_timeout            (one of our services did not answer in time)
        └── ServiceFailed             503  service_failed         (a service around us failed or did not answer)
            ├── StorageUnreachable    503  storage_unreachable    (a Ceph cluster, a shared folder)
            └── ServiceRefused        500  service_refused        (it answered, and refused)
                └── RequestRefused    400  request_refused        (what a user asked for: they can do something about it)

An error crosses RPC as (code, message, details) and is raised again as the same class on the other side.
The message is for the user: it says what failed, on what, and what the user can do, if anything. Host names and addresses
belong in ``details``, which only administrators see.

Each class says whether the failure is *passing*: nothing was refused, and the same request may succeed a little later (no answer,
no connection, 5xx, a database that failed). Moves wait until such a failure has passed; after a refusal they roll back. Some
failures may pass or not, such as a broken hypervisor or a mistake in the program (`few_tries`): moves retry those a few times.
"""

from __future__ import annotations

import logging
from typing import Any, ClassVar

# Characters of an error's message, and of its details, that another process may send.
_LONGEST_TEXT = 20_000


class CausewayError(Exception):
    """Root of the tree. ``message`` is shown to users, ``details`` to administrators."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal_error"
    #: the same request may succeed a little later
    passing: ClassVar[bool] = True
    #: it may pass or not: it is retried a few times, and not waited for
    few_tries: ClassVar[bool] = True
    #: it passes, but not within seconds: no thread waits for it
    takes_long: ClassVar[bool] = False

    def __init__(self, message: str, *, details: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    @property
    def passes_by_itself(self) -> bool:
        """Whether it is waited for: nobody has to do anything about this failure, which may be an outage."""
        return self.passing and not self.few_tries

    @property
    def log_level(self) -> int:
        """The level at which a request that ends with it is logged. ERROR means that an operator has to look."""
        is_users = self.status < 500 or self.status == 501 or isinstance(self, Cancelled | NoValidHost)
        return logging.WARNING if is_users or self.passes_by_itself else logging.ERROR

    def to_wire(self) -> dict[str, Any]:
        """The form in which the error crosses RPC."""
        return {"code": self.code, "message": self.message, "details": self.details}


class BadRequest(CausewayError):
    status, code = 400, "bad_request"
    passing, few_tries = False, False


class ValidationFailed(BadRequest):
    code = "validation_failed"


class FlavorNotUsable(BadRequest):
    code = "flavor_not_usable"


class ConsoleTypeUnavailable(BadRequest):
    """There is no such type of console, or this guest has none of that type."""

    code = "console_type_unavailable"

    @classmethod
    def of(cls, kind: str, why: str = "") -> ConsoleTypeUnavailable:
        return cls(f"Unavailable console type {kind}." + (f" {why}" if why else ""))


class InvalidVolume(BadRequest):
    """The volume's state or kind does not allow what is asked of it."""

    code = "invalid_volume"


class MigrationNotFinished(BadRequest):
    """Confirm or revert without a migration in status ``finished``."""

    code = "no_finished_migration"


class Unauthorized(CausewayError):
    status, code = 401, "unauthorized"
    passing, few_tries = False, False


class Forbidden(CausewayError):
    status, code = 403, "forbidden"
    passing, few_tries = False, False


class OverQuota(Forbidden):
    code = "over_quota"


class NotFound(CausewayError):
    status, code = 404, "not_found"
    passing, few_tries = False, False


class ServerNotFound(NotFound):
    code = "server_not_found"

    def __init__(self, uuid: str, *, details: str = "") -> None:
        super().__init__(f"Instance {uuid} could not be found.", details=details)


class FlavorNotFound(NotFound):
    code = "flavor_not_found"


class ImageNotFound(NotFound):
    code = "image_not_found"


class PortNotFound(NotFound):
    code = "port_not_found"


class NetworkNotFound(NotFound):
    code = "network_not_found"


class VolumeNotFound(NotFound):
    code = "volume_not_found"


class KeyNotFound(NotFound):
    """The key manager has no such key, or not for whoever asks."""

    code = "key_not_found"


class KeyPairNotFound(NotFound):
    code = "keypair_not_found"


class HostNotFound(NotFound):
    code = "host_not_found"


class MigrationNotFound(NotFound):
    code = "migration_not_found"


class AggregateNotFound(NotFound):
    code = "aggregate_not_found"


class ServerGroupNotFound(NotFound):
    code = "server_group_not_found"


class ServiceNotFound(NotFound):
    code = "service_not_found"


class VersionNotAcceptable(CausewayError):
    status, code = 406, "version_not_acceptable"
    passing, few_tries = False, False


class Conflict(CausewayError):
    status, code = 409, "conflict"
    passing, few_tries = False, False


class InvalidState(Conflict):
    """The server's state does not allow the action."""

    code = "invalid_state"

    @classmethod
    def for_action(cls, action: str, uuid: str, attribute: str, value: object) -> InvalidState:
        return cls(f"Cannot '{action}' instance {uuid} while it is in {attribute} {value}")


class StateChanged(Conflict):
    """Another request or process has changed the server, its records or its operation meanwhile."""

    code = "state_changed"


class AcceptedMeanwhile(StateChanged):
    """Other requests were accepted while this one was counted, and what it left of a limit is used up."""

    code = "accepted_meanwhile"


class DevicesChanging(StateChanged):
    """A volume or port of the server is being attached or detached: the server can't begin to move until that ends."""

    code = "devices_changing"


class RecordsClosed(StateChanged):
    """A move has read the server's records in this cell for the last time: they are written elsewhere, or a little later."""

    code = "records_closed"

    @classmethod
    def for_server(cls, uuid: str) -> RecordsClosed:
        return cls(f"Server {uuid} is being handed over to another cell at this moment. Try again in a few seconds.")


class RequestChanged(StateChanged):
    """A build request was changed after a conductor had read it: the server is written again, with the change."""

    code = "request_changed"


class TakenOver(StateChanged):
    """A conductor learns that another one took over the move that it worked on; a compute refuses its orders."""

    code = "taken_over"


class ServerLocked(Conflict):
    code = "server_locked"

    @classmethod
    def for_server(cls, uuid: str) -> ServerLocked:
        return cls(f"Instance {uuid} is locked")


class CellDown(Conflict):
    """The request needs the records of a cell whose database does not answer."""

    code = "cell_down"
    passing = True


class ServiceDown(Conflict):
    code = "service_down"
    passing = True


class UnsupportedMediaType(CausewayError):
    status, code = 415, "unsupported_media_type"
    passing, few_tries = False, False


class NotImplementedHere(CausewayError):
    status, code = 501, "not_implemented"
    passing, few_tries = False, False


class NoSuchMethod(CausewayError):
    """The called service has no such method, because it is of an earlier release. Another process of it may be newer."""

    code = "no_such_method"

    def __init__(self, method: str, *, details: str = "") -> None:
        super().__init__(
            f"There is no RPC method {method}: the called service is of an earlier release. Upgrade it and try again.",
            details=details,
        )


class Misconfigured(CausewayError):
    """An option or a policy file is not understood, or asks for what is impossible. A process does not start with it."""

    code = "misconfigured"
    passing, few_tries = False, False


class DatabaseFailed(CausewayError):
    """A database did not answer, or refused for a reason that is not the caller's."""

    status, code = 503, "database_failed"
    passing, few_tries = True, False


class QueryFailed(CausewayError):
    """A cell's database can be reached, but what one request asked it failed or took too long."""

    status, code = 500, "query_failed"

    def __init__(self, cell: str, *, details: str = "") -> None:
        super().__init__(
            f"The database of {cell} could not answer this request. Ask for less, or ask the operator: the log has"
            " the reason.",
            details=details,
        )


class ListIncomplete(CausewayError):
    """Cells do not answer, and the operator wants no list without their records."""

    status, code = 500, "list_incomplete"
    passing, few_tries = True, False


class OperationFailed(CausewayError):
    """Something that was accepted failed afterwards; ends in a fault, an action event and a migration in ``error``."""

    code = "operation_failed"
    passing, few_tries = False, False


class Cancelled(OperationFailed):
    """The work is undone, because a user cancelled it or it took longer than the configured limit."""

    code = "move_cancelled"


class NoValidHost(OperationFailed):
    code = "no_valid_host"


class HostsSilent(NoValidHost):
    """No host is up, because all hosts of a cell stopped reporting at the same time: their queue or database failed, not they."""

    code = "hosts_silent"
    passing = True


class ClaimRefused(OperationFailed):
    """The chosen host can't take the server; another one may."""

    code = "claim_refused"


class DecryptionRefused(ClaimRefused):
    """The host can't decrypt a volume, or is not given its key."""

    status, code = 400, "decryption_refused"


class UnexpectedFailure(OperationFailed):
    """Something failed in a way that nobody foresaw."""

    code = "unexpected_failure"
    passing, few_tries = True, True


class Interrupted(OperationFailed):
    """The process that worked on it was stopped in the middle. When asked again, another one continues from what is there."""

    code = "interrupted"
    passing = True


class GuestFailed(OperationFailed):
    """The hypervisor refused or failed, and does not say which."""

    code = "guest_failed"
    passing, few_tries = True, True


class DiskInUse(GuestFailed):
    """Somebody has a disk in shared storage open. A guest that was killed is seen for half a minute."""

    code = "disk_in_use"


class GuestRefused(OperationFailed):
    """What another host sent of a guest is not what this host accepts: its definition, its memory, its firmware, an address."""

    code = "guest_refused"


class GuestStayed(OperationFailed):
    """A live migration failed, and both hypervisors show that the guest is where it was, or nowhere."""

    code = "guest_stayed"


class GuestUnclear(OperationFailed):
    """Which host owns a guest is unknown now, or its migration is running: nobody resumes, starts or destroys anything."""

    code = "guest_unclear"
    passing = True


class GuestArrived(OperationFailed):
    """A saga that is being rolled back turns out to have passed its pivot: it goes forward."""

    code = "guest_arrived"


class CopyNotUsable(OperationFailed):
    """The copy of a server that was to be kept could not be shown, or is not whole: the other one is not destroyed."""

    code = "copy_not_usable"


class DiskTransferFailed(OperationFailed):
    """A disk can't be sent or received: it does not exist (any more), or is not the expected one."""

    code = "disk_transfer_failed"


class DiskTransferBroken(DiskTransferFailed):
    """A transfer broke off, or what came was damaged on its way."""

    code = "disk_transfer_broken"
    passing = True


class ImageRefused(OperationFailed):
    """An image, or a disk of another host, is not what it was said to be, names other files, or is too large."""

    code = "image_refused"


class WarmCopyImpossible(OperationFailed):
    """The disks of a guest can't be copied while it runs; they can be when it is off."""

    code = "warm_copy_impossible"


class Held(OperationFailed):
    """A prepared move waits for its time, as its user asked."""

    code = "held"
    passing, few_tries = True, False
    takes_long = True


class HostUnreachable(OperationFailed):
    """One host can't connect to another."""

    code = "host_unreachable"


class HostNotTrusted(OperationFailed):
    """Two hosts can't encrypt what goes from one to the other: one refuses the other's certificate, or speaks no TLS."""

    code = "host_not_trusted"


class SenderNotTrusted(OperationFailed):
    """A service of ours refused a message, because it is not signed by anybody who may send it."""

    code = "sender_not_trusted"

    def __init__(self, method: str, *, details: str) -> None:
        super().__init__(f"{method} was refused: its sender is not trusted.", details=details)


class AnswerRefused(OperationFailed):
    """A host answered with things of other servers, or with what can't be. Nothing of its answer was used."""

    code = "answer_refused"

    def __init__(self, host: str, method: str, what: str) -> None:
        super().__init__(
            "The host of the server gave an answer that can't be right. Ask your cloud's administrator.",
            details=f"Host {host} answered {method} with {what}. It is broken or compromised: look at it before it gets servers.",
        )


class ReportRefused(OperationFailed):
    """A host reported what can't be recorded, or what nobody could read. Nothing of its report was used."""

    code = "report_refused"

    def __init__(self, host: str, what: str) -> None:
        super().__init__(
            f"A report of {host} was refused: it has what no host can have.",
            details=f"It reported: {what}. The host is broken or compromised, or newer than the conductor: look at it.",
        )


class VifPluggingFailed(OperationFailed):
    """The network service did not plug a port in time. Not passing: the time was long, and the guest is off meanwhile."""

    code = "vif_plugging_failed"


class PortsDown(OperationFailed):
    """The guest is where it should be, and a port of it can't be reached. A warning: nothing is undone for it."""

    code = "ports_down"


class OperationUnderWay(OperationFailed):
    """The request waits until another operation on the same server ends."""

    code = "operation_under_way"
    passing = True
    takes_long = True


class HostDown(OperationFailed):
    """The request needs a host that does not report. No operator said that it is dead, so it is waited for."""

    code = "host_down"
    passing: ClassVar[bool] = True
    takes_long: ClassVar[bool] = True


class HostFenced(OperationFailed):
    """The request needs a host that an operator declared dead (``forced_down``)."""

    code = "host_fenced"


class HostTooOld(OperationFailed):
    """The host's compute service is of an earlier release, or held to one, and does not know what it was asked."""

    code = "host_too_old"


class ClaimsUnknown(OperationFailed):
    """A host lost its record of which resources a server holds, and asks for it. Until it knows, it makes no guest."""

    code = "claims_unknown"
    passing = True


class RpcTimeout(OperationFailed):
    """One of our services did not answer in time. It may have carried out the call, or not, or may still be working on it."""

    code = "rpc_timeout"
    passing = True

    def __init__(self, method: str, where: str, seconds: float) -> None:
        super().__init__(
            f"{method} was not answered within {seconds:g} seconds, and may still take effect."
            " Look at the result before you try again.",
            details=f"{where} did not answer {method} within {seconds:g} seconds. Check that the service is up, and its log.",
        )


class ServiceFailed(OperationFailed):
    """A service around us (image, network, volume, Placement, identity) failed or did not answer in time."""

    status, code = 503, "service_failed"
    passing = True


class StorageUnreachable(ServiceFailed):
    """The storage that several hosts share did not answer in time, or refused. What was asked may have happened, or not."""

    code = "storage_unreachable"


class ServiceRefused(ServiceFailed):
    """A service around us answered and refused. A retry will not help."""

    status, code = 500, "service_refused"
    passing = False


class RequestRefused(ServiceRefused):
    """A service around us refused what a user asked for or named, and says why: it is not fit for that now."""

    status, code = 400, "request_refused"


def _tree(cls: type[CausewayError]) -> dict[str, type[CausewayError]]:
    found = {cls.code: cls}
    for child in cls.__subclasses__():
        found |= _tree(child)
    return found


def from_wire(wire: Any) -> CausewayError:
    """Returns the error that ``to_wire`` described. An unknown code, from a newer service, becomes the root class.

    Any JSON becomes an error that can be recorded: the other side may be compromised.
    """
    said = wire if isinstance(wire, dict) else {"message": wire}
    code, message, details = (_text(said.get(name)) for name in ("code", "message", "details"))
    cls = _tree(CausewayError).get(code, CausewayError)
    error = cls.__new__(cls)
    CausewayError.__init__(error, message, details=details)
    return error


def _text(value: object) -> str:
    text = value if isinstance(value, str) else "" if value is None else repr(value)
    # Databases take no NUL, nor half of a surrogate pair.
    return text[:_LONGEST_TEXT].replace("\0", "").encode(errors="replace").decode()
