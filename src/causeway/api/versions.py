"""Microversions: their range, and how a request names the one it wants.

Source: the Compute API guide, "Microversions"; API-WG guideline on microversions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import microversion_parse

from causeway import errors

STANDARD_HEADER = "OpenStack-API-Version"
LEGACY_HEADER = "X-OpenStack-Nova-API-Version"
VARY = f"{STANDARD_HEADER}, {LEGACY_HEADER}"


class Version(NamedTuple):
    """A microversion; compares with plain pairs: ``request.version >= (2, 53)``."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


# `causeway.api.microversions` has what each of them changed.
MIN = Version(2, 1)
MAX = Version(2, 104)


class UnparsableVersion(errors.BadRequest):
    """The header's value is not a version. The answer has no version headers then."""

    code = "bad_version"


class UnsupportedVersion(errors.VersionNotAcceptable):
    """A version outside the range; the answer's headers name it."""

    def __init__(self, asked: Version) -> None:
        super().__init__(f"Version {asked} is not supported by the API. Minimum is {MIN} and maximum is {MAX}.")
        self.asked = asked


def asked_for(environ: Mapping[str, Any], *, default: Version = MIN) -> Version:
    """The version that a request asks for; 2.1 if it names none.

    Raises UnparsableVersion (400) and UnsupportedVersion (406).
    """
    headers = {}
    if (standard := environ.get("HTTP_OPENSTACK_API_VERSION")) is not None:
        headers[STANDARD_HEADER.lower()] = standard
    if (legacy := environ.get("HTTP_X_OPENSTACK_NOVA_API_VERSION")) is not None:
        headers[LEGACY_HEADER.lower()] = legacy
    if not headers:
        return default
    text = microversion_parse.get_version(headers, service_type="compute", legacy_headers=[LEGACY_HEADER.lower()])
    if text is None:
        return default
    return parse(text.strip())


def parse(text: str) -> Version:
    """The version that ``X.Y`` or ``latest`` names. Raises UnparsableVersion, UnsupportedVersion."""
    if text == "latest":
        return MAX
    major, dot, minor = text.partition(".")
    if not (dot and _is_number(major, least=1) and _is_number(minor, least=0)):
        raise UnparsableVersion(f"API Version String {text} is of invalid format. Must be of format MajorNum.MinorNum.")
    version = Version(int(major), int(minor))
    if not MIN <= version <= MAX:
        raise UnsupportedVersion(version)
    return version


def _is_number(text: str, *, least: int) -> bool:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        return False
    return str(int(text)) == text and int(text) >= least
