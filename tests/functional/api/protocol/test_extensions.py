"""What old clients ask to find out what is there."""

from __future__ import annotations

from typing import Any


def test_extensions_are_listed_for_old_clients(api: Any) -> None:
    aliases = [extension["alias"] for extension in api.get("/extensions").json["extensions"]]
    assert {"servers", "os-migrations", "os-services"} < set(aliases)
    assert api.get("/extensions/os-keypairs").json["extension"]["name"] == "Keypairs"
    assert api.get("/extensions/nothing").status == 404
