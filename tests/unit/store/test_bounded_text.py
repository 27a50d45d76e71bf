"""Text has the same limits on every database; what programs say is cut to them."""

from __future__ import annotations

import pytest

from causeway import errors
from causeway.model.instance import InstanceAction
from causeway.store.cell import actions, hosts
from causeway.store.database import Database


def test_sqlite_refuses_what_other_databases_refuse(database: Database) -> None:
    hosts.report_service(database, "h" * 255, "nova-compute", "compute", 2)
    with pytest.raises(errors.DatabaseFailed, match="did not do"):
        hosts.report_service(database, "h" * 256, "nova-compute", "compute", 2)


def test_the_message_of_an_action_is_cut_and_found_again(database: Database) -> None:
    said = "The image service said: " + "x" * 600
    actions.start(database, InstanceAction("createImage", "server", "req-1"))
    with database.write() as connection:
        actions.set_message_in(connection, "server", "req-1", said)
        assert actions.has_message_in(connection, "server", "req-1", said)
        assert not actions.has_message_in(connection, "server", "req-1", "something else")
    (action,) = actions.of_instance(database, "server")
    assert action.message == said[:255]
