"""What these tests share with those of the operators' page, the metadata service and the API."""

from __future__ import annotations

from tests.functional.conftest import (
    admin,
    api,
    app,
    cloud,
    conductor,
    database_urls,
    empty_databases,
    empty_placement,
    images,
    network,
    placement,
    put_schemas,
    server_databases,
    volumes,
)
from tests.functional.metadata.conftest import guests

__all__ = [
    "admin",
    "api",
    "app",
    "cloud",
    "conductor",
    "database_urls",
    "empty_databases",
    "empty_placement",
    "guests",
    "images",
    "network",
    "placement",
    "put_schemas",
    "server_databases",
    "volumes",
]
