"""Typed endpoints: turns an object's methods into RPC methods by their type hints.

On the wire a request's arguments are plain JSON values, and a reply is ``{"result": ...}`` or ``{"error": ...}`` (see
`CausewayError.to_wire`).
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar, get_type_hints

import msgspec

from causeway.context import RequestContext
from causeway.errors import CausewayError

LOG = logging.getLogger(__name__)

# Names that `RpcClient.call` and `cast` use themselves.
RESERVED = frozenset({"context", "method", "server", "result", "timeout", "monitor", "version", "fanout"})

T = TypeVar("T")
Reply = dict[str, Any]


def to_wire(value: object) -> Any:
    """Converts a value of any type that RPC supports to plain JSON values. Raises `TypeError` for other types."""
    return msgspec.to_builtins(value, str_keys=True)


def from_wire(value: Any, wanted: type[T]) -> T:
    """Converts the result of `to_wire` to a value of type ``wanted``. Raises `msgspec.ValidationError`."""
    return msgspec.convert(value, wanted, str_keys=True)


@dataclass(frozen=True)
class Signature:
    """How a method is called.

    ``types``: the types of its arguments, by name. ``optional``: the arguments that a message may leave out. ``result``: the type
    of the answer. ``arguments``: the struct to which a message's arguments are converted.
    """

    types: dict[str, Any]
    optional: frozenset[str]
    result: Any
    arguments: type[msgspec.Struct]


# Read once: a process may have an endpoint of one class for each of many hosts.
@cache
def signature_of(function: Callable[..., Any]) -> Signature:
    """Reads the signature of a method as its class has it: self, a context, and keyword-only arguments.

    Raises `TypeError` if an argument is not keyword-only, has no type, or has a name of `RESERVED`.
    """
    hints = get_type_hints(function)
    types: dict[str, Any] = {}
    optional: set[str] = set()
    fields: list[Any] = []
    _self, _context, *parameters = inspect.signature(function).parameters.values()
    for parameter in parameters:
        if parameter.kind is not parameter.KEYWORD_ONLY or parameter.name not in hints:
            raise TypeError(f"{function.__qualname__}: {parameter.name} must be a keyword-only argument with a type")
        if parameter.name in RESERVED:
            raise TypeError(f"{function.__qualname__}: {parameter.name} is an argument of RpcClient.call itself")
        types[parameter.name] = hint = hints[parameter.name]
        if parameter.default is parameter.empty:
            fields.append((parameter.name, hint))
        else:
            optional.add(parameter.name)
            # If the argument is not sent, the default of the method applies.
            fields.append((parameter.name, hint | msgspec.UnsetType, msgspec.UNSET))
    arguments = msgspec.defstruct(function.__name__, fields, kw_only=True, forbid_unknown_fields=True)
    # Prepares the types before threads use them: see `causeway.decoding`.
    msgspec.json.Decoder(arguments)
    return Signature(types, frozenset(optional), hints.get("return", Any), arguments)


@dataclass(frozen=True)
class Method:
    """One method of an endpoint. ``function``: the method of one object."""

    name: str
    signature: Signature
    function: Callable[..., Any]

    def __call__(self, context: RequestContext, arguments: dict[str, Any]) -> Reply:
        """Runs the method and returns the reply. A CausewayError becomes a reply too; other errors are raised."""
        try:
            given = msgspec.convert(arguments, self.signature.arguments, str_keys=True)
        except msgspec.ValidationError as error:
            return failure(
                CausewayError(
                    f"The arguments of the call do not fit RPC method {self.name}: {error}. Upgrade the caller."
                )
            )
        values = {name: getattr(given, name) for name in self.signature.types}
        try:
            result = self.function(
                context, **{name: value for name, value in values.items() if value is not msgspec.UNSET}
            )
            return {"result": to_wire(result)}
        except CausewayError as error:
            return failure(error)


def failure(error: CausewayError) -> Reply:
    return {"error": error.to_wire()}


@dataclass
class Endpoint:
    """The methods of an object that can be called, under a namespace. ``version``: the newest version of the interface."""

    version: str
    namespace: str | None = None
    methods: dict[str, Method] = field(default_factory=dict)


def expose(target: object, version: str = "1.0", namespace: str | None = None) -> Endpoint:
    """Makes an endpoint of all public methods of an object.

    Raises `TypeError` if a method has an argument that is not keyword-only, or has no type.
    """
    endpoint = Endpoint(version, namespace)
    for name in dir(type(target)):
        if name.startswith("_"):
            continue
        function = inspect.getattr_static(type(target), name)
        if inspect.isfunction(function):
            endpoint.methods[name] = Method(name, signature_of(function), getattr(target, name))
    return endpoint
