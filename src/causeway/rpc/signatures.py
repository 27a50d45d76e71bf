"""Signed messages: who sent a message, and to whom, is checked before anything in it is used.

RabbitMQ does not say who published a message, and an account that may answer calls may publish to any queue. So a sender with a
private key signs what it sends, and a receiver with trusted keys checks it (`causeway.rpc.keys`; which sender may send what:
`causeway.rpc.senders`). Signed are the topic and the server that the message is for, namespace, method, version, arguments, the
context with the topic for a late answer, and the time of sending. So no part can be changed, and a message to one host can't
be sent to another one. Messages count for `max_age` seconds, because a message to any server of a topic could be repeated.

The signature travels as a field of the context, which receivers of an older release ignore. It names the fields that it signs.
Others, such as those that libraries add, are taken out. Answers are not signed: only who gets a call knows its random id and
the ticket of its late answer.
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from oslo_config import cfg

from causeway import metrics
from causeway.errors import Misconfigured
from causeway.rpc.keys import Sender, TrustedKeys, fingerprint, read_private_key

FIELD = "signature"
GROUP = "rpc_signatures"
# What is signed begins with it, so that it is never mistaken for anything else that the key may sign one day.
_PURPOSE = b"causeway-rpc-1\n"
# Python's own, because it encodes again whatever it has decoded: large numbers, NaN, halves of surrogates.
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class Refused(Exception):
    """A message must not be carried out. ``outcome``: as it is counted; the text is the reason, for administrators."""

    def __init__(self, outcome: str, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome


# Whether a sender may send a message, as oslo.messaging has it, to a topic.
MaySend = Callable[[Sender, str, dict[str, Any]], bool]


class _Context(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


class Signatures:
    """What a process signs with, and whom it trusts; one without trusted keys checks nothing.

    ``now``: a clock in seconds since 1970.
    """

    def __init__(
        self,
        key: Ed25519PrivateKey | None,
        trusted: TrustedKeys | None,
        *,
        required: bool,
        max_age: float,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.trusted, self.required = trusted, required
        self._key = key
        self._name = fingerprint(key.public_key()) if key else ""
        self._max_age = max_age
        self._now = now

    @property
    def signs(self) -> bool:
        return self._key is not None

    def sign(self, context: dict[str, Any], target: Any, method: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The context with a signature of the message. ``target``: oslo.messaging's, to which it is sent."""
        assert self._key is not None
        envelope: dict[str, Any] = {
            "key": self._name,
            "sent": round(self._now(), 3),
            "server": target.server,
            "fields": sorted(context),
        }
        message = {"method": method, "namespace": target.namespace, "version": target.version, "args": arguments}
        value = self._key.sign(_signed(target.topic, envelope, context, message))
        return context | {FIELD: envelope | {"value": base64.b64encode(value).decode()}}

    def check(
        self, topic: str, server: str, context: dict[str, Any], message: dict[str, Any], may_send: MaySend
    ) -> None:
        """Checks a message that ``server`` got at ``topic``. Takes what is not signed out of the context.

        Raises Refused.
        """
        if self.trusted is None:
            return
        try:
            sender = self._sender(topic, server, context, message)
            if sender is not None and not may_send(sender, topic, message):
                raise Refused("not_allowed", f"it is signed by {sender}, who may not send this")
        except Refused as refused:
            metrics.RPC_CHECKED.labels(topic, refused.outcome).inc()
            raise
        metrics.RPC_CHECKED.labels(topic, "unsigned" if sender is None else "signed").inc()

    def _sender(self, topic: str, server: str, context: dict[str, Any], message: dict[str, Any]) -> Sender | None:
        """Who signed the message; None if nobody did and nobody must. Raises Refused."""
        assert self.trusted is not None
        envelope = context.pop(FIELD, None)
        if envelope is None:
            if self.required:
                raise Refused("missing", f"it is not signed: the sender needs [{GROUP}] private_key")
            return None
        value, fields = _parts(envelope)
        found = self.trusted.find(envelope["key"])
        if found is None:
            raise Refused("unknown_key", f"its key {envelope['key']!r:.40} is none of the trusted ones")
        key, sender = found
        signed = {name: context[name] for name in fields if name in context}
        try:
            key.verify(value, _signed(topic, envelope, signed, message))
        except (InvalidSignature, TypeError, ValueError, RecursionError) as failure:
            raise Refused("wrong", f"the signature of {sender} does not fit: it signed something else") from failure
        self._check_address(server, envelope, sender)
        for name in context.keys() - signed.keys():
            del context[name]
        return sender

    def _check_address(self, server: str, envelope: dict[str, Any], sender: Sender) -> None:
        if envelope["server"] not in (None, server):
            raise Refused("other_receiver", f"{sender} sent it to {envelope['server']!r:.80}")
        age = self._now() - envelope["sent"]
        # Also if it is not a number.
        if not abs(age) <= self._max_age:
            raise Refused(
                "too_old", f"{sender} sent it {age:.0f} s ago, it counts for {self._max_age:g}: do clocks differ?"
            )


@dataclass(frozen=True)
class SignedContext:
    """A context for RPC that signs the message when it is sent."""

    signatures: Signatures
    context: _Context
    target: Any
    method: str
    arguments: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return self.signatures.sign(self.context.to_dict(), self.target, self.method, self.arguments)


def from_options(conf: cfg.ConfigOpts) -> Signatures | None:
    """What the options of a process say; None if it neither signs nor checks.

    Raises Misconfigured if a file can't be used, or signatures are required without any trusted keys.
    """
    if GROUP not in conf:
        return None
    options = conf[GROUP]
    if options.required and not options.trusted_keys:
        raise Misconfigured(
            f"[{GROUP}] required: nobody is trusted, so nothing would be done. Set [{GROUP}] trusted_keys."
        )
    if not options.private_key and not options.trusted_keys:
        return None
    key = read_private_key(Path(options.private_key)) if options.private_key else None
    trusted = TrustedKeys(Path(options.trusted_keys)) if options.trusted_keys else None
    return Signatures(key, trusted, required=options.required, max_age=options.max_age)


def _parts(envelope: Any) -> tuple[bytes, list[str]]:
    """The signature itself and the names of the signed fields. Raises Refused for what is no envelope."""
    try:
        well_formed = (
            isinstance(envelope["key"], str)
            and isinstance(envelope["sent"], float)
            and isinstance(envelope["server"], str | None)
            and all(isinstance(name, str) for name in envelope["fields"])
        )
        value = base64.b64decode(envelope["value"], validate=True)
    except (KeyError, TypeError, ValueError, binascii.Error):
        well_formed, value = False, b""
    if not well_formed:
        raise Refused("wrong", "its signature has not the form of one")
    return value, envelope["fields"]


def _signed(topic: str, envelope: dict[str, Any], context: dict[str, Any], message: dict[str, Any]) -> bytes:
    """What is signed of a message, always in the same form."""
    return (
        _PURPOSE
        + _encode(
            {
                "topic": topic,
                "key": envelope["key"],
                "sent": envelope["sent"],
                "server": envelope["server"],
                "fields": envelope["fields"],
                "context": context,
                "namespace": message.get("namespace"),
                "method": message.get("method"),
                "version": message.get("version"),
                "arguments": message.get("args"),
            }
        ).encode()
    )
