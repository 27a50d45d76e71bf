"""For all tests: ``--cloud FILE`` runs the functional suite on a cloud elsewhere (see `deployed_cloud`), ``--databases KIND``
that of the API on other databases (see `server_databases`)."""

from __future__ import annotations

import os

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cloud",
        metavar="FILE",
        default=os.environ.get("CAUSEWAY_TEST_CLOUD"),
        help="cloud.yaml of a running cloud: tests that know an embedded one use it (default: $CAUSEWAY_TEST_CLOUD)",
    )
    parser.addoption(
        "--databases",
        choices=("postgresql", "mariadb"),
        help="run tests/functional/api on databases of this kind, not on SQLite files (see `server_databases`)",
    )


# They change or watch the process of the tests; the cloud is in others.
INSIDE = ("monkeypatch", "caplog")
# The folders whose tests are of whole clouds.
SUITE = ("moves", "known_bugs")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With ``--cloud``, what can only be done to a cloud in this process is skipped, and says so."""
    if config.getoption("--cloud") is None:
        return
    for item in items:
        reason = _why_not_by_url(item)
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=f"by URL: {reason}"))


def _why_not_by_url(item: pytest.Item) -> str | None:
    marker = item.get_closest_marker("embedded")
    if marker is not None:
        return str(marker.args[0])
    known = getattr(item, "fixturenames", ())
    if "deployed" in known:
        found = [name for name in INSIDE if name in known]
        return f"changes or watches code of the cloud ({found[0]})" if found else None
    return "makes an embedded cloud of its own" if item.path.parent.name in SUITE else None
