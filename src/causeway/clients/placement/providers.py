"""Resource providers: inventories, traits and aggregates of compute hosts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import os_traits
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from causeway import errors
from causeway.clients.placement.http import CONCURRENT_UPDATE, PlacementHttp, Refusal, translated
from causeway.clients.placement.types import Inventory, Provider, Resources

ATTEMPTS = 4
CUSTOM = "CUSTOM_"

T = TypeVar("T")


class ProviderCalls:
    """The part of the client that compute hosts, host aggregates and the operator's commands use."""

    def __init__(self, http: PlacementHttp) -> None:
        self._http = http
        self._custom_names: set[str] = set()

    def get_provider(self, uuid: str) -> Provider | None:
        try:
            return Provider.from_wire(self._http.call("GET", "/resource_providers/{uuid}", uuid=uuid))
        except Refusal as refusal:
            if refusal.status == 404:
                return None
            raise errors.ServiceRefused("Placement refused to show a provider.", details=str(refusal)) from refusal

    def list_providers(
        self,
        *,
        name: str | None = None,
        in_tree: str | None = None,
        member_of: str | None = None,
        required: str | None = None,
    ) -> list[Provider]:
        """All providers, or those with a name, in a tree (by the uuid of any of its providers), in an aggregate, with a trait."""
        wanted = {"name": name, "in_tree": in_tree, "member_of": member_of, "required": required}
        query = [(key, value) for key, value in wanted.items() if value is not None]
        with translated("to list providers"):
            answer = self._http.call("GET", "/resource_providers", query=query)
        return [Provider.from_wire(wire) for wire in answer["resource_providers"]]

    def ensure_provider(self, uuid: str, name: str, *, parent_uuid: str | None = None) -> Provider:
        """The provider with this uuid, which is made if needed. Raises ServiceRefused if another one has the name."""
        found = self.get_provider(uuid)
        if found is not None:
            return found
        body: dict[str, str] = {"uuid": uuid, "name": name}
        if parent_uuid is not None:
            body["parent_provider_uuid"] = parent_uuid
        try:
            return Provider.from_wire(self._http.call("POST", "/resource_providers", body=body))
        except Refusal as refusal:
            raced = self.get_provider(uuid) if refusal.status == 409 else None
            if raced is not None:
                return raced
            raise errors.ServiceRefused(
                f"Placement refused to make the provider {name}.", details=str(refusal)
            ) from refusal

    def delete_provider(self, uuid: str, *, cascade: bool = False) -> None:
        """Deletes a provider, if it exists. ``cascade``: first deletes all allocations on it; without, these are a refusal."""
        if cascade:
            for consumer in self.get_provider_allocations(uuid):
                self._delete("/allocations/{uuid}", consumer)
        self._delete("/resource_providers/{uuid}", uuid)

    def get_provider_allocations(self, uuid: str) -> dict[str, Resources]:
        """Consumer uuid -> its allocations on this provider. Empty if there is no such provider."""
        try:
            answer = self._http.call("GET", "/resource_providers/{uuid}/allocations", uuid=uuid)
        except Refusal as refusal:
            if refusal.status == 404:
                return {}
            raise errors.ServiceRefused("Placement refused to list allocations.", details=str(refusal)) from refusal
        return {consumer: held["resources"] for consumer, held in answer["allocations"].items()}

    # Inventories and usages

    def get_inventories(self, uuid: str) -> dict[str, Inventory]:
        with translated("to show a provider's inventory"):
            answer = self._http.call("GET", "/resource_providers/{uuid}/inventories", uuid=uuid)
        return {name: Inventory.from_wire(wire) for name, wire in answer["inventories"].items()}

    def set_inventory(self, uuid: str, inventories: dict[str, Inventory]) -> bool:
        """Replaces the provider's inventories. Leaves out classes with total 0. Returns whether something changed.

        Raises ServiceRefused if this would delete a class that has allocations.
        """
        wanted = {name: inventory.to_wire() for name, inventory in inventories.items() if inventory.total > 0}
        for name in wanted:
            self._ensure_custom("/resource_classes/{name}", name)

        def change() -> bool:
            now = self._http.call("GET", "/resource_providers/{uuid}/inventories", uuid=uuid)
            if now["inventories"] == wanted:
                return False
            body = {"resource_provider_generation": now["resource_provider_generation"], "inventories": wanted}
            self._http.call("PUT", "/resource_providers/{uuid}/inventories", uuid=uuid, body=body)
            return True

        return self._change("to set a provider's inventory", change)

    def get_usages(self, uuid: str) -> Resources:
        """The allocated amounts of a provider, by resource class."""
        with translated("to show a provider's usage"):
            answer = self._http.call("GET", "/resource_providers/{uuid}/usages", uuid=uuid)
        usages: Resources = answer["usages"]
        return usages

    def get_project_usages(self, project_id: str, user_id: str | None = None) -> Resources:
        """The allocated amounts of a project (and user). A move counts at source and target."""
        query = [("project_id", project_id)] + ([("user_id", user_id)] if user_id else [])
        with translated("to show a project's usage"):
            answer = self._http.call("GET", "/usages", query=query)
        usages: Resources = answer["usages"]
        return usages

    # Traits

    def get_traits(self, uuid: str) -> set[str]:
        with translated("to show a provider's traits"):
            return set(self._http.call("GET", "/resource_providers/{uuid}/traits", uuid=uuid)["traits"])

    def set_traits(self, uuid: str, traits: set[str], *, owned: set[str] | None = None) -> bool:
        """Sets the provider's traits. ``owned``: removes only traits of this set, since operators set traits too.

        Returns whether something changed.
        """
        return self._change_traits(uuid, lambda now: traits | (now - owned if owned is not None else set()))

    def change_traits(self, uuid: str, *, add: set[str] | None = None, remove: set[str] | None = None) -> bool:
        """Adds and removes traits, and keeps the others. Returns whether something changed."""
        return self._change_traits(uuid, lambda now: (now | (add or set())) - (remove or set()))

    def _change_traits(self, uuid: str, compute: Callable[[set[str]], set[str]]) -> bool:
        def change() -> bool:
            now = self._http.call("GET", "/resource_providers/{uuid}/traits", uuid=uuid)
            wanted = compute(set(now["traits"]))
            if wanted == set(now["traits"]):
                return False
            for name in wanted:
                self._ensure_custom("/traits/{name}", name)
            body = {"resource_provider_generation": now["resource_provider_generation"], "traits": sorted(wanted)}
            self._http.call("PUT", "/resource_providers/{uuid}/traits", uuid=uuid, body=body)
            return True

        return self._change("to set a provider's traits", change)

    # Aggregates: a host aggregate's uuid is the Placement aggregate's

    def get_aggregates(self, uuid: str) -> set[str]:
        with translated("to show a provider's aggregates"):
            return set(self._http.call("GET", "/resource_providers/{uuid}/aggregates", uuid=uuid)["aggregates"])

    def sharing_with(self, uuid: str, resource_class: str) -> list[str]:
        """The other providers that share the class with this one through an aggregate (shared storage)."""
        aggregates = self.get_aggregates(uuid)
        if not aggregates:
            return []
        query = [("member_of", "in:" + ",".join(sorted(aggregates))), ("required", os_traits.MISC_SHARES_VIA_AGGREGATE)]
        with translated("to list sharing providers"):
            answer = self._http.call("GET", "/resource_providers", query=query)
        sharing = [wire["uuid"] for wire in answer["resource_providers"] if wire["uuid"] != uuid]
        return [each for each in sharing if resource_class in self.get_inventories(each)]

    def add_aggregate(self, uuid: str, aggregate: str) -> bool:
        return self._change_aggregates(uuid, lambda now: now | {aggregate})

    def remove_aggregate(self, uuid: str, aggregate: str) -> bool:
        return self._change_aggregates(uuid, lambda now: now - {aggregate})

    def _change_aggregates(self, uuid: str, compute: Callable[[set[str]], set[str]]) -> bool:
        def change() -> bool:
            now = self._http.call("GET", "/resource_providers/{uuid}/aggregates", uuid=uuid)
            wanted = compute(set(now["aggregates"]))
            if wanted == set(now["aggregates"]):
                return False
            body = {
                "resource_provider_generation": now["resource_provider_generation"],
                "aggregates": sorted(wanted),
            }
            self._http.call("PUT", "/resource_providers/{uuid}/aggregates", uuid=uuid, body=body)
            return True

        return self._change("to set a provider's aggregates", change)

    # Inside

    def _change(self, what: str, change: Callable[[], T]) -> T:
        """Calls ``change``, which reads and writes, again if the provider was changed in between."""
        retrying = Retrying(
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_random_exponential(multiplier=0.02, max=1.0),
            retry=retry_if_exception(lambda error: isinstance(error, Refusal) and error.code == CONCURRENT_UPDATE),
            reraise=True,
        )
        with translated(what):
            return retrying(change)

    def _ensure_custom(self, route: str, name: str) -> None:
        """Makes a custom trait or resource class, unless it exists."""
        if name.startswith(CUSTOM) and route + name not in self._custom_names:
            with translated(f"to make {name}"):
                self._http.call("PUT", route, name=name)
            self._custom_names.add(route + name)

    def _delete(self, route: str, uuid: str) -> None:
        try:
            self._http.call("DELETE", route, uuid=uuid)
        except Refusal as refusal:
            if refusal.status != 404:
                raise errors.ServiceRefused(
                    "Placement refused to delete what is still in use.", details=str(refusal)
                ) from refusal
