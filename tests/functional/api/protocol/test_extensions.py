"""What old clients ask to find out what is there."""

from __future__ import annotations

from typing import Any


def test_extensions_are_listed_for_old_clients(api: Any) -> None:
    listed = api.get("/extensions").json["extensions"]
    aliases = [extension["alias"] for extension in listed]
    assert len(aliases) == 99 and aliases == sorted(aliases)
    assert {"NMN", "OS-EXT-STS", "os-admin-actions", "os-migrations", "os-services", "os-shelve"} < set(aliases)
    assert {"servers", "flavors", "images"}.isdisjoint(aliases)
    fields = {"alias", "name", "description", "updated", "links", "namespace"}
    assert all(set(each) == fields and each["name"] and each["description"] for each in listed)
    assert api.get("/extensions/os-keypairs").json["extension"] == listed[aliases.index("os-keypairs")]
    assert api.get("/extensions/nothing").status == 404
