"""The versions of the data that guests request, and the files of each version."""

from __future__ import annotations

from datetime import date

LATEST = "latest"
EC2 = (
    *("1.0", "2007-01-19", "2007-03-01", "2007-08-29", "2007-10-10", "2007-12-15"),
    *("2008-02-01", "2008-09-01", "2009-04-04"),
)
FOLSOM, GRIZZLY, HAVANA, LIBERTY = "2012-08-10", "2013-04-04", "2013-10-17", "2015-10-15"
NEWTON_ONE, NEWTON_TWO, OCATA, ROCKY = "2016-06-30", "2016-10-06", "2017-02-22", "2018-08-27"
VICTORIA, EPOXY = "2020-10-14", "2025-04-04"
OPENSTACK = (FOLSOM, GRIZZLY, HAVANA, LIBERTY, NEWTON_ONE, NEWTON_TWO, OCATA, ROCKY, VICTORIA, EPOXY)

META_DATA, USER_DATA, PASSWORD = "meta_data.json", "user_data", "password"
VENDOR_DATA, NETWORK_DATA, VENDOR_DATA2 = "vendor_data.json", "network_data.json", "vendor_data2.json"
# file -> the first version that has it
FILES = {
    META_DATA: FOLSOM,
    USER_DATA: FOLSOM,
    PASSWORD: GRIZZLY,
    VENDOR_DATA: HAVANA,
    NETWORK_DATA: LIBERTY,
    VENDOR_DATA2: NEWTON_TWO,
}


def openstack_version(asked: str) -> str | None:
    """Returns the version that a guest names; None if it is unknown."""
    return _meant(asked, OPENSTACK)


def ec2_version(asked: str) -> str | None:
    """As `openstack_version`."""
    return _meant(asked, EC2)


def _meant(asked: str, known: tuple[str, ...]) -> str | None:
    if asked == LATEST:
        return known[-1]
    return asked if asked in known else None


def listed_openstack_versions(today: date) -> list[str]:
    """Returns the versions that guests see: those up to today's date, by the clock of this machine."""
    return [*(version for version in OPENSTACK if version <= today.isoformat()), LATEST]


def listed_ec2_versions() -> list[str]:
    return [*EC2, LATEST]
