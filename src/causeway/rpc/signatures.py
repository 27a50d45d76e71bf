"""Signed messages: a receiver checks who sent a message, and to whom, before it uses anything in it.

RabbitMQ does not say who published a message, and an account that may answer calls may publish to any queue. So a sender with a
private key signs its messages, and a receiver with trusted keys checks them (`causeway.rpc.keys`). `causeway.rpc.senders` decides
which messages each sender may send.

The signature covers the topic and the server that the message is for, the namespace, method, version and arguments, the context
with the topic for a late answer, and the time of sending. So nobody can change a part of the message, or send a message for one
host to another. A message to any server of a topic could still be repeated, so a signature is valid for only `max_age` seconds.

The signature is sent as a field of the context. It names the fields that it covers.
The receiver removes all others, such as those that libraries add. Answers are not signed: only the receiver of a call knows the
call's random id and the ticket of its late answer.
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
# Every signed text begins with this, so that nobody can present a signature made for another purpose as that of a message.
_PURPOSE = b"causeway-rpc-1\n"
# Python's own encoder, because it encodes everything that it decodes: large numbers, NaN, halves of surrogate pairs.
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class Refusal(Exception):
    """A message must not be carried out. ``outcome``: the metric's label; the text is the reason, for administrators."""

    def __init__(self, outcome: str, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome


# (sender, topic, message as oslo.messaging has it) -> whether the sender is allowed to send it there
MaySend = Callable[[Sender, str, dict[str, Any]], bool]


class _Context(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


class Signatures:
    """The key with which a process signs, and the keys that it trusts. Without trusted keys it checks nothing.

    ``max_age``: seconds for which a signature is valid. ``now``: a clock in seconds since 1970.
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
        """Returns the context with a signature of the message. ``target``: oslo.messaging's target of the message."""
        assert self._key is not None
        envelope: dict[str, Any] = {
            "key": self._name,
            "sent": round(self._now(), 3),
            "server": target.server,
            "fields": sorted(context),
        }
        message = {"method": method, "namespace": target.namespace, "version": target.version, "args": arguments}
        value = self._key.sign(_signed_bytes(target.topic, envelope, context, message))
        return context | {FIELD: envelope | {"value": base64.b64encode(value).decode()}}

    def check(
        self, topic: str, server: str, context: dict[str, Any], message: dict[str, Any], may_send: MaySend
    ) -> None:
        """Checks a message that ``server`` got at ``topic``. Removes unsigned fields from the context.

        Raises Refusal if the message must not be carried out.
        """
        if self.trusted is None:
            return
        try:
            sender = self._sender(topic, server, context, message)
            if sender is not None and not may_send(sender, topic, message):
                raise Refusal("not_allowed", f"it is signed by {sender}, which is not allowed to send this")
        except Refusal as refused:
            metrics.RPC_CHECKED.labels(topic, refused.outcome).inc()
            raise
        metrics.RPC_CHECKED.labels(topic, "unsigned" if sender is None else "signed").inc()

    def _sender(self, topic: str, server: str, context: dict[str, Any], message: dict[str, Any]) -> Sender | None:
        """Returns the signer of the message; None if it is not signed and need not be. Raises Refusal."""
        assert self.trusted is not None
        envelope = context.pop(FIELD, None)
        if envelope is None:
            if self.required:
                raise Refusal("missing", f"it is not signed: the sender needs [{GROUP}] private_key")
            return None
        value, fields = _parts(envelope)
        found = self.trusted.find(envelope["key"])
        if found is None:
            raise Refusal("unknown_key", f"its key {envelope['key']!r:.40} is not one of the trusted keys")
        key, sender = found
        signed = {name: context[name] for name in fields if name in context}
        try:
            key.verify(value, _signed_bytes(topic, envelope, signed, message))
        except (InvalidSignature, TypeError, ValueError, RecursionError) as failure:
            raise Refusal("wrong", f"the signature of {sender} does not match: the message was changed") from failure
        self._check_address(server, envelope, sender)
        for name in context.keys() - signed.keys():
            del context[name]
        return sender

    def _check_address(self, server: str, envelope: dict[str, Any], sender: Sender) -> None:
        if envelope["server"] not in (None, server):
            raise Refusal("other_receiver", f"{sender} sent it to {envelope['server']!r:.80}")
        age = self._now() - envelope["sent"]
        # Written so that NaN is refused too.
        if not abs(age) <= self._max_age:
            raise Refusal(
                "too_old",
                f"{sender} sent it {age:.0f} s ago, but it is valid for {self._max_age:g} s: check the clocks of both machines",
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
    """Reads the options of a process. Returns None if it neither signs nor checks messages.

    Raises Misconfigured if a file can't be used, or if signatures are required but no keys are trusted.
    """
    if GROUP not in conf:
        return None
    options = conf[GROUP]
    if options.required and not options.trusted_keys:
        raise Misconfigured(
            f"[{GROUP}] required is set without trusted keys, so every message would be refused. Set [{GROUP}] trusted_keys."
        )
    if not options.private_key and not options.trusted_keys:
        return None
    key = read_private_key(Path(options.private_key)) if options.private_key else None
    trusted = TrustedKeys(Path(options.trusted_keys)) if options.trusted_keys else None
    return Signatures(key, trusted, required=options.required, max_age=options.max_age)


def _parts(envelope: Any) -> tuple[bytes, list[str]]:
    """Returns the signature and the names of the signed fields. Raises Refusal if the envelope is malformed."""
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
        raise Refusal("wrong", "its signature is malformed")
    return value, envelope["fields"]


def _signed_bytes(topic: str, envelope: dict[str, Any], context: dict[str, Any], message: dict[str, Any]) -> bytes:
    """Returns the bytes of a message that are signed: the same for sender and receiver."""
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
