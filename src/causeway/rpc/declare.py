"""Declares the calls of an interface: a client's method declares the message, and has only a docstring as its body.

    @call(since="1.4", monitor=True)
    def connect_volume(self, context: RequestContext, host: str, *, token: OperationToken, volume: BlockDevice) -> BlockDevice:
        \"""Connects a volume to the host.\"""

- The method's name is sent as the name of the RPC method. A call to one server of the topic has the argument ``host``; a call
  to any server of the topic does not.
- The arguments behind the ``*`` are sent, and the return type is that of the answer. Three kinds of arguments differ: `NotSent`,
  `IfSet`, and ``timeout``, which says how many seconds the caller waits.
- ``since`` is the version with which the message is sent: one of the interface's history (`Client.history`). ``too_old``
  makes the error if the receiver, or the upgrade level, is older.

`calls_of` lists the calls of a client. Fault points and the contract test (`tests/unit/rpc/test_contract.py`) are made from it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, ClassVar, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

from causeway import errors
from causeway.context import RequestContext
from causeway.rpc.client import RpcClient
from causeway.rpc.endpoint import RESERVED
from causeway.rpc.transport import Transport

P = ParamSpec("P")
T = TypeVar("T")


class _Sent(Enum):
    ALWAYS = "always"
    IF_SET = "if it is set"
    NEVER = "never"


# An argument that receivers of an earlier release do not know. It is sent unless it is None, False or empty.
IfSet = Annotated[T, _Sent.IF_SET]
# An argument that is never sent: it only decides with which version the call is sent (`Newer`).
NotSent = Annotated[T, _Sent.NEVER]

# ``reporter`` of a call with a token of an operation: only hosts that take part in the operation have it.
HOLDERS_OF_TOKEN: tuple[str, ...] = ()

# (host or service that is too old, name of the call) -> the error that the caller gets
TooOld = Callable[[str, str], errors.CausewayError]


@dataclass(frozen=True)
class Newer:
    """The version with which a call is sent if ``when`` returns True for its arguments, and the error if that is too new."""

    since: str
    when: Callable[[Mapping[str, Any]], bool]
    too_old: TooOld


@dataclass(frozen=True)
class Argument:
    """An argument of a call: its type, its default (`inspect.Parameter.empty` for none), and when it is sent."""

    type: Any
    default: Any
    sent: _Sent

    @property
    def is_optional(self) -> bool:
        """Whether a message may lack this argument."""
        return self.sent is _Sent.IF_SET

    def sends(self, value: object) -> bool:
        if self.sent is _Sent.IF_SET:
            return not (value is None or value is False or (isinstance(value, dict | list) and not value))
        return self.sent is _Sent.ALWAYS


@dataclass(frozen=True)
class Call:
    """A declared call or cast. ``arguments``: those that a caller passes, by name; ``result``: the type of the answer."""

    name: str
    arguments: dict[str, Argument]
    result: Any
    since: str
    is_cast: bool = False
    fanout: bool = False
    monitor: bool = False
    silence: float | None = None
    timeout: float | None = None
    newer: tuple[Newer, ...] = ()
    too_old: TooOld | None = None
    reporter: tuple[str, ...] | None = None

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions with which this call can be sent."""
        return (self.since, *(newer.since for newer in self.newer))

    @property
    def message(self) -> dict[str, Argument]:
        """The arguments that are sent."""
        return {name: each for name, each in self.arguments.items() if each.sent is not _Sent.NEVER}

    def send(self, client: Client, context: RequestContext, host: str | None, given: dict[str, Any]) -> Any:
        """Sends the call with the arguments ``given``. Returns the answer; None for a cast.

        Raises TypeError for undeclared or missing arguments, and what `RpcClient.call` or `RpcClient.cast` raises.
        """
        given = client._for_host(self, host, self._filled(given))
        message = {name: value for name, value in given.items() if self.arguments[name].sends(value)}
        if self.is_cast:
            client._rpc.cast(context, self.name, server=host, fanout=self.fanout, version=self.since, **message)
            return None
        # The newest one that the arguments need.
        newer = next((each for each in reversed(self.newer) if each.when(given)), None)
        since = newer.since if newer else self.since
        too_old = newer.too_old if newer else self.too_old

        def ask() -> Any:
            return client._rpc.call(
                context,
                self.name,
                result=self.result,
                server=host,
                timeout=given.get("timeout", self.timeout),
                monitor=self.monitor,
                silence=self.silence,
                version=since,
                **message,
            )

        if too_old is None:
            return client._believed(self, host, given, ask())
        unknown: errors.NoSuchMethod | None = None
        if client._rpc.can_send(since):
            try:
                answer = ask()
            except errors.NoSuchMethod as failure:
                unknown = failure
            else:
                return client._believed(self, host, given, answer)
        raise too_old(host or (unknown.details if unknown else ""), self.name) from unknown

    def _filled(self, given: dict[str, Any]) -> dict[str, Any]:
        if unknown := given.keys() - self.arguments.keys():
            raise TypeError(f"{self.name}() takes no {', '.join(sorted(unknown))}")
        filled = {name: given.get(name, argument.default) for name, argument in self.arguments.items()}
        if missing := [name for name, value in filled.items() if value is inspect.Parameter.empty]:
            raise TypeError(f"{self.name}() lacks {', '.join(missing)}")
        return filled


@dataclass(frozen=True)
class call:
    """Turns a stub into a call, whose caller waits for the answer. The call raises what `RpcClient.call` raises.

    - ``since``: the version of the interface that added the call.
    - ``monitor``: for a long call: the caller waits as long as the server sends heartbeats.
    - ``silence``: seconds without a heartbeat after which a long call has failed, by default the option
      ``rpc_response_timeout``. For calls that may be repeated at once, because the message may be lost.
    - ``timeout``: seconds, by default the option ``rpc_response_timeout``.
    - ``newer``: for a call that got more arguments in later versions; the oldest first.
    - ``too_old``: makes the error if the receiver or the upgrade level is older than ``since``.
    - ``reporter``: where the arguments name the host that calls, such as ``report.host``; or `HOLDERS_OF_TOKEN`. None: hosts must
      not call this. Signed calls are checked against this (`causeway.rpc.senders`).
    """

    since: str
    monitor: bool = False
    silence: float | None = None
    timeout: float | None = None
    newer: tuple[Newer, ...] = ()
    too_old: TooOld | None = None
    reporter: tuple[str, ...] | None = None

    def __call__(self, stub: Callable[P, T]) -> Callable[P, T]:
        arguments, result, addresses_host = _read(stub)
        declared = Call(
            stub.__name__,
            arguments,
            result,
            self.since,
            monitor=self.monitor,
            silence=self.silence,
            timeout=self.timeout,
            newer=self.newer,
            too_old=self.too_old,
            reporter=self.reporter,
        )
        return _sending(stub, declared, addresses_host=addresses_host)


@dataclass(frozen=True)
class cast:
    """Turns a stub into a cast, which returns when the message is in the queue and has no answer.

    ``since``: the version of the interface that added the cast. ``fanout``: the message goes to all servers of the topic. The
    cast raises what `RpcClient.cast` raises.
    """

    since: str
    fanout: bool = False

    def __call__(self, stub: Callable[P, None]) -> Callable[P, None]:
        arguments, result, addresses_host = _read(stub)
        if result is not type(None):
            raise TypeError(f"{stub.__qualname__}: a cast has no answer, so its return type must be None")
        declared = Call(stub.__name__, arguments, result, self.since, is_cast=True, fanout=self.fanout)
        return _sending(stub, declared, addresses_host=addresses_host)


class Client:
    """The base class of clients. A client has the calls of one interface as its methods.

    >>> class PrinterClient(Client):
    ...     topic, history = "printer", {"1.0": "print"}
    ...     @call(since="1.0")
    ...     def print_text(self, context: RequestContext, host: str, *, text: str, copies: int = 1) -> list[str]:
    ...         "Returns the pages."

    A server has the same method, with a body; ``transport`` is the same message queue:

    >>> class PrinterEndpoint:
    ...     def print_text(self, context: RequestContext, *, text: str, copies: int = 1) -> list[str]:
    ...         if not text:
    ...             raise errors.BadRequest("There is nothing to print.")
    ...         return [text] * copies
    >>> from causeway.rpc import RpcServer
    >>> server = RpcServer(transport, "printer", "printer1", [PrinterEndpoint()])
    >>> server.start()

    >>> printers, context = PrinterClient(transport), RequestContext()
    >>> printers.print_text(context, "printer1", text="hello", copies=2)
    ['hello', 'hello']

    An error of `causeway.errors` that the server raises is raised again at the caller:

    >>> printers.print_text(context, "printer1", text="")
    Traceback (most recent call last):
    causeway.errors.BadRequest: There is nothing to print.
    >>> server.stop()

    ``topic``: where the servers listen. ``history``: the versions of the interface, oldest first, and what each of them added.
    ``version_cap``, ``listens_at``: see `RpcClient`.
    """

    topic: ClassVar[str]
    history: ClassVar[Mapping[str, str]]
    #: whether the servers are hosts
    to_hosts: ClassVar[bool] = False

    def __init__(self, transport: Transport, version_cap: str | None = None, *, listens_at: str | None = None) -> None:
        self._rpc = RpcClient(
            transport,
            self.topic,
            version=next(iter(self.history)),
            version_cap=version_cap,
            listens_at=listens_at,
            to_hosts=self.to_hosts,
        )

    def _for_host(self, call: Call, host: str | None, given: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Returns the arguments of a call as they may be sent to a host."""
        return given

    def _believed(self, call: Call, host: str | None, given: Mapping[str, Any], answer: Any) -> Any:  # noqa: ARG002
        """Returns what is believed of an answer. Raises an error for one that must not be used."""
        return answer

    def allows(self, method: Callable[..., object]) -> bool:
        """Whether the version cap allows a call: ``computes.allows(ComputeClient.verify_server)``."""
        return self._rpc.can_send(declared_by(method).since)


def declared_by(method: Callable[..., object]) -> Call:
    """Returns the declaration of a client's method. Raises TypeError if the method is neither a call nor a cast."""
    declared = getattr(method, "declared", None)
    if not isinstance(declared, Call):
        raise TypeError(f"{method} is no RPC call")
    return declared


def calls_of(client: type[Client]) -> dict[str, Call]:
    """Returns all calls and casts of a client, by name."""
    found = (getattr(method, "declared", None) for _name, method in inspect.getmembers(client, inspect.isfunction))
    return {each.name: each for each in found if isinstance(each, Call)}


def _read(stub: Callable[..., object]) -> tuple[dict[str, Argument], Any, bool]:
    """Returns the arguments and result of a stub, and whether it has a host. Raises TypeError for a wrong declaration."""
    hints = get_type_hints(stub, include_extras=True)
    parameters = inspect.signature(stub).parameters.values()
    places = [each.name for each in parameters if each.kind is not each.KEYWORD_ONLY]
    if places not in (["self", "context"], ["self", "context", "host"]):
        raise TypeError(f"{stub.__qualname__}: a call is declared with (self, context, *) or (self, context, host, *)")
    arguments: dict[str, Argument] = {}
    for each in parameters:
        if each.kind is not each.KEYWORD_ONLY:
            continue
        hint, sent = hints[each.name], _Sent.ALWAYS
        if get_origin(hint) is Annotated:
            hint, sent = get_args(hint)[:2]
        if each.name == "timeout":
            sent = _Sent.NEVER
        elif each.name in RESERVED:
            raise TypeError(f"{stub.__qualname__}: {each.name} is an argument of RpcClient.call itself")
        arguments[each.name] = Argument(hint, each.default, sent)
    return arguments, hints["return"], "host" in places


def _sending(stub: Callable[P, T], declared: Call, *, addresses_host: bool) -> Callable[P, T]:
    def to_host(client: Client, context: RequestContext, host: str, **given: Any) -> Any:
        return declared.send(client, context, host, given)

    def to_any(client: Client, context: RequestContext, **given: Any) -> Any:
        return declared.send(client, context, None, given)

    sending: Any = functools.wraps(stub)(to_host if addresses_host else to_any)
    sending.declared = declared
    return sending  # type: ignore[no-any-return]
