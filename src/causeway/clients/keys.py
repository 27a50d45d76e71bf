"""The key manager: Barbican, by castellan. Only conductors ask it; no host has an account that may.

As whom a key is read, `causeway.clients.rights` decides. Keys are in no log: keystoneauth would log bodies at the level DEBUG,
so `_Session` logs nothing.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import requests
import tenacity
from keystoneauth1 import exceptions as keystone_errors
from keystoneauth1 import service_token
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token
from oslo_context import context as oslo_context

from causeway import errors
from causeway.clients.connections import Credentials, ServiceSessions, calls
from causeway.clients.rights import EXPIRED, OF_SERVER, CalledAs, decide
from causeway.context import RequestContext

GROUP = "barbican_service_user"
NAME = "key manager"
KEY_BITS = 256
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 3.0
# How their errors end up in ours says all that they log.
_THEIR_LOGS = ("castellan", "barbicanclient")

T = TypeVar("T")


class _Failed(Exception):
    """The key manager did not answer with what was wanted. ``status``: None if it did not answer at all."""

    def __init__(self, status: int | None, message: str) -> None:
        super().__init__(message)
        self.status = status


class KeyClient:
    """Keys by their ids. Nothing is remembered: a key that was revoked is refused the next time."""

    def __init__(self, sessions: ServiceSessions) -> None:
        self._sessions = sessions
        self._conf = sessions.conf
        self._lock = threading.Lock()
        self._manager: Any = None
        self._retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_is_passing),
            stop=tenacity.stop_any(
                tenacity.stop_after_attempt(self._conf.barbican.http_retries + 1),
                tenacity.stop_when_event_set(sessions.stopping),
            ),
            wait=tenacity.wait_exponential(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS) + tenacity.wait_random(0, 0.1),
            sleep=tenacity.sleep_using_event(sessions.stopping),
            reraise=True,
        )

    def read_key(self, context: RequestContext, key_id: str, *, called_as: CalledAs = OF_SERVER) -> bytes:
        """A key of a server, or of a volume of a server. Raises KeyNotFound, Forbidden, ServiceRefused, ServiceFailed.

        ``called_as``: `SERVICE` for a key of our own.
        """
        what = f"read key {key_id}"
        found = self._call(context, "GET /v1/secrets/{secret_id}/payload", what, key_id, called_as, _payload_of(key_id))
        if not isinstance(found, bytes) or not found:
            raise errors.ServiceRefused(f"The {NAME} has no content of key {key_id}.")
        return found

    def make_key(self, context: RequestContext, name: str, *, called_as: CalledAs) -> str:
        """Makes a key of 256 bits, and returns its id. Whoever it is made as owns it.

        ``name``: an earlier attempt's key of this name is taken. Raises Forbidden, ServiceRefused, ServiceFailed.
        """
        what = f"make {name}"
        found = self._call(context, "GET /v1/secrets", what, name, called_as, _named(name))
        if found is not None:
            return found
        return self._call(context, "POST /v1/secrets", what, name, called_as, _stored(name))

    def delete_key(self, context: RequestContext, key_id: str, *, called_as: CalledAs) -> None:
        """Deletes a key that was made for a server, if it exists. Raises Forbidden, ServiceRefused, ServiceFailed."""
        route, what = "DELETE /v1/secrets/{secret_id}", f"delete key {key_id}"
        with suppress(errors.KeyNotFound):
            self._call(context, route, what, key_id, called_as, _deleted(key_id))

    def _call(
        self,
        context: RequestContext,
        route: str,
        what: str,
        key_id: str,
        called_as: CalledAs,
        do: Callable[[Any, Any], T],
    ) -> T:
        rights = decide(context, called_as, what, without_identity=self._sessions.is_without_identity)
        ours = self._sessions.credentials(GROUP)
        expired = context.auth_token is not None and self._sessions.has_expired(context.auth_token)
        as_user = rights.as_user and not (expired and rights.ours_after >= EXPIRED)
        try:
            if as_user:
                try:
                    return self._send(route, do, self._as_user(context, ours))
                except _Failed as failed:
                    if failed.status not in rights.ours_after or ours is None:
                        raise
            return self._send(route, do, self._as_ourselves(ours))
        except _Failed as failed:
            raise _error_of(failed, what, key_id) from failed

    def _send(self, route: str, do: Callable[[Any, Any], T], caller: Any) -> T:
        key = f"{NAME} {route}"

        def once() -> T:
            calls.count(key)
            if calls.before is not None:
                calls.before(key)
            found = _translated(lambda: do(self._backend(), caller))
            if calls.after is not None:
                calls.after(key)
            return found

        if route.startswith("POST"):
            return once()
        return self._retrying(once)

    def _as_user(self, context: RequestContext, ours: Credentials | None) -> Any:
        auth: Any = Token(self._endpoint(ours), context.auth_token)
        if ours is not None and (self._sessions.sends_service_token or self._conf.barbican.send_service_user_token):
            auth = service_token.ServiceTokenAuthWrapper(user_auth=auth, service_auth=ours.auth)
        return self._caller(auth, ours)

    def _as_ourselves(self, ours: Credentials | None) -> Any:
        if ours is None:
            raise _unconfigured()
        return self._caller(ours.auth, ours)

    def _caller(self, auth: Any, ours: Credentials | None) -> _Caller:
        options = self._conf.barbican
        session = _Session(
            auth=auth,
            session=self._sessions.transport,
            verify=options.verify_ssl and (options.verify_ssl_path or True),
            timeout=float(options.timeout),
        )
        return _Caller(session, auth, self._endpoint(ours))

    def _endpoint(self, ours: Credentials | None) -> str:
        options = self._conf.barbican
        if options.barbican_endpoint:
            return str(options.barbican_endpoint).rstrip("/").removesuffix("v1").rstrip("/")
        if ours is None:
            raise _unconfigured()
        try:
            found = ours.auth.get_endpoint(
                ours.session,
                service_type="key-manager",
                interface=options.barbican_endpoint_type,
                region_name=options.barbican_region_name,
                skip_discovery=True,
            )
        except keystone_errors.ClientException as error:
            raise errors.ServiceFailed(
                f"The identity service did not say where the {NAME} is. Try again later.",
                details=f"{type(error).__name__}: {error}",
            ) from error
        if found is None:
            raise errors.ServiceRefused(
                f"This cloud has no {NAME}: there are no keys of encrypted volumes.",
                details="no endpoint of type key-manager: see [barbican] barbican_endpoint, barbican_endpoint_type and"
                " barbican_region_name",
            )
        return str(found).rstrip("/").removesuffix("v1").rstrip("/")

    def _backend(self) -> Any:
        """castellan's manager. It is loaded at the first use, because few processes need it."""
        with self._lock:
            if self._manager is None:
                for name in _THEIR_LOGS:
                    logging.getLogger(name).setLevel(logging.CRITICAL)
                self._manager = _make_manager(self._conf)
            return self._manager


class _Session(Session):  # type: ignore[misc]
    def request(self, *args: Any, **more: Any) -> Any:
        return super().request(*args, **(more | {"log": False}))


class _Caller(oslo_context.RequestContext):  # type: ignore[misc]
    """What castellan takes as a context: as whom it calls, over which connection."""

    def __init__(self, session: Session, auth: Any, endpoint: str) -> None:
        super().__init__(overwrite=False)
        self.session, self.auth, self.endpoint = session, auth, endpoint

    def get_auth_plugin(self) -> Any:
        return self.auth


def _make_manager(conf: Any) -> Any:
    from castellan.key_manager.barbican_key_manager import BarbicanKeyManager

    class Barbican(BarbicanKeyManager):  # type: ignore[misc]
        """castellan's own connections have no timeout."""

        def __init__(self) -> None:
            self.conf = conf

        def _get_barbican_client(self, context: Any) -> Any:
            from barbicanclient import client

            return client.Client(
                version=conf.barbican.barbican_api_version, session=context.session, endpoint=context.endpoint
            )

    return Barbican()


def _unconfigured() -> errors.ServiceFailed:
    return errors.ServiceFailed(
        f"The {NAME} can't be called: this service has no credentials of its own.",
        details=f"set auth_type and the options of that plug-in in [{GROUP}] or [service_user]",
    )


def _named(name: str) -> Callable[[Any, Any], str | None]:
    def find(manager: Any, caller: Any) -> str | None:
        found = manager._get_barbican_client(caller).secrets.list(name=name, limit=1)
        return str(found[0].secret_ref).rpartition("/")[2] if found else None

    return find


def _stored(name: str) -> Callable[[Any, Any], str]:
    def store(manager: Any, caller: Any) -> str:
        from castellan.common.objects.symmetric_key import SymmetricKey

        return str(manager.store(caller, SymmetricKey("AES", KEY_BITS, secrets.token_bytes(KEY_BITS // 8), name=name)))

    return store


def _deleted(key_id: str) -> Callable[[Any, Any], None]:
    def delete(manager: Any, caller: Any) -> None:
        manager.delete(caller, key_id)

    return delete


def _payload_of(key_id: str) -> Callable[[Any, Any], Any]:
    return lambda manager, caller: manager.get(caller, key_id).get_encoded()


def _translated(do: Callable[[], T]) -> T:
    """Raises _Failed for what castellan, Barbican's client and keystoneauth raise."""
    from barbicanclient import exceptions as barbican_errors
    from castellan.common import exception as castellan_errors

    try:
        return do()
    except castellan_errors.ManagedObjectNotFoundError as error:
        raise _Failed(404, str(error)) from None
    except (castellan_errors.Forbidden, barbican_errors.HTTPAuthError) as error:
        raise _Failed(401, str(error)) from None
    except (castellan_errors.CastellanException, barbican_errors.HTTPError) as error:
        # castellan wraps what Barbican's client raised.
        inner = error.__context__ if isinstance(error, castellan_errors.CastellanException) else error
        if isinstance(inner, barbican_errors.HTTPAuthError):
            raise _Failed(401, str(inner)) from None
        raise _Failed(getattr(inner, "status_code", None) or None, str(inner or error)) from None
    except keystone_errors.HttpError as error:
        raise _Failed(error.http_status, str(error)) from None
    except (keystone_errors.ClientException, requests.RequestException, OSError, ValueError) as error:
        # ValueError: Barbican's client could not read the answer, of which the text may have parts.
        text = "" if isinstance(error, ValueError) else f": {error}"
        raise _Failed(None, f"{type(error).__name__}{text}") from None


def _is_passing(error: BaseException) -> bool:
    return isinstance(error, _Failed) and (error.status is None or error.status >= 500)


def _error_of(failed: _Failed, what: str, key_id: str) -> errors.CausewayError:
    said = str(failed)
    if failed.status == 404:
        return errors.KeyNotFound(f"Key {key_id} could not be found in the {NAME}.", details=said)
    if failed.status in (401, 403):
        return errors.Forbidden(
            f"The {NAME} does not allow to {what}.",
            details=f"{said}; our own account was refused too: see what the {NAME} must allow in docs/deployment.md",
        )
    if _is_passing(failed):
        return errors.ServiceFailed(f"The {NAME} failed when it was asked to {what}. Try again later.", details=said)
    return errors.ServiceRefused(f"The {NAME} refused to {what}.", details=f"{failed.status}: {said}")
