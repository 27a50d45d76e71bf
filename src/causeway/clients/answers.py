"""Translates error answers of other services into our errors."""

from __future__ import annotations

from typing import Any

import requests

from causeway import errors

# What is asked does not fit what is there, or what else happens to it. Other refusals are about how we ask.
UNFIT = frozenset({400, 409})
# The service has too much to do.
PASSING = frozenset({408, 429})


def error_of(
    service: str, response: requests.Response, what: str, missing: errors.NotFound | None, *, is_users: bool
) -> errors.CausewayError:
    """The error for an answer of 400 or more. ``what`` completes "refused to ..."; ``missing``: the error for 404.

    ``is_users``: whether the call does what a user asked for, so that a refusal is for them to know.
    """
    status, message = response.status_code, message_of(response)
    details = f"{response.request.method} {response.url}: {status}: {message}"
    if status == 404:
        if missing is not None:
            missing.details = missing.details or details
            return missing
        return errors.NotFound(f"The {service} service could not {what}: {message}", details=details)
    if status == 401:
        return errors.Unauthorized(
            f"The {service} service did not accept the credentials to {what}. Log in again.", details=details
        )
    if status == 403:
        return errors.Forbidden(f"The {service} service does not allow to {what}: {message}", details=details)
    if status == 413 or kind_of(response) == "OverQuota":
        return errors.OverQuota(f"The {service} service's quota does not allow to {what}: {message}", details=details)
    if status >= 500 or status in PASSING:
        return errors.ServiceFailed(f"The {service} service failed to {what}. Try again later.", details=details)
    refused = errors.RequestRefused if is_users and status in UNFIT else errors.ServiceRefused
    return refused(f"The {service} service refused to {what}: {message}", details=details)


def message_of(response: requests.Response) -> str:
    """The message in an error's body, in any of the forms that services use."""
    document = _document(response)
    if isinstance(document, dict):
        inner = next((value for value in document.values() if isinstance(value, dict)), document)
        for name in ("message", "detail", "title"):
            if isinstance(inner.get(name), str) and inner[name]:
                return str(inner[name])
        if isinstance(document.get("message"), str):
            return str(document["message"])
    text = response.text if isinstance(response.text, str) else ""
    if "<html" in text.lower():
        text = text[text.lower().find("<body") :]
        text = " ".join(_without_tags(text).split())
    return text.strip()[:500] or str(response.reason)


def kind_of(response: requests.Response) -> str:
    """The network service's name for an error, e.g. ``IpAddressInUse``; empty if there is none."""
    document = _document(response)
    inner = document.get("NeutronError") if isinstance(document, dict) else None
    return str(inner.get("type", "")) if isinstance(inner, dict) else ""


def _document(response: requests.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None


def _without_tags(text: str) -> str:
    kept, inside = [], False
    for character in text:
        if character in "<>":
            inside = character == "<"
            kept.append(" ")
        elif not inside:
            kept.append(character)
    return "".join(kept)
