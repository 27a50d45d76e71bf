"""A cloud with what tests of known bugs do to it besides: something happens at the moment when a certain call is made."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from causeway.clients.placement import PlacementClient
from causeway.rpc.transport import Outgoing, Verdict
from causeway.store.api import mappings
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.moves_cloud import PATIENCE, until

ALL_HOSTS = ("cell1-host1", "cell1-host2", "cell2-host1", "cell2-host2")


class KnownBugsCloud(AuditedCloud):
    """See the module."""

    def at(self, method: str, act: Callable[[], Any]) -> threading.Event:
        """The first RPC ``method`` from now on waits until ``act`` was done; the event is set then."""
        done, begun = threading.Event(), list[Any]()
        if self.by_url:
            until_then = ExitStack()
            reached = until_then.enter_context(self.parts.faults.held(method))

            def watch() -> None:
                with until_then:
                    if reached.wait(PATIENCE):
                        act()
                        done.set()

            threading.Thread(target=watch, daemon=True).start()
            return done

        def on_send(message: Outgoing) -> Verdict:
            if message.method == method and not begun:
                begun.append(message)
                act()
                done.set()
            return Verdict.DELIVER

        self.parts.around.transports.on_send = on_send
        return done

    def at_every_call(self, look: Callable[[Outgoing], Any]) -> None:
        """``look`` sees every RPC to a compute before it is delivered."""

        def on_send(message: Outgoing) -> Verdict:
            if message.topic == "compute" and message.method != "external_instance_events":
                look(message)
            return Verdict.DELIVER

        self.parts.around.transports.on_send = on_send

    @property
    def other_placement(self) -> PlacementClient:
        """A client of somebody else, who knows nothing of what the cloud wrote."""
        found = self.parts.around.placement if self.by_url else self.parts.placement.client()
        assert isinstance(found, PlacementClient)
        return found

    def spec(self, server: Any) -> dict[str, Any]:
        """The request spec that is kept with a server."""
        return mappings.get_spec(self.parts.api_database, server.id)

    def act(self, server: Any, body: dict[str, Any], *, who: Any = None, version: str = "2.96") -> Any:
        """The answer to an action."""
        compute = (who or self.member).compute
        return compute.post(f"/servers/{server.id}/action", json=body, microversion=version)

    def service(self, host: str) -> Any:
        return next(each for each in self.admin.compute.services() if each.host == host)

    @contextmanager
    def service_with(self, host: str, **changes: Any) -> Iterator[None]:
        """The compute service of a host is changed (``status``, ``forced_down``) and changed back."""
        path = f"/os-services/{self.service(host).id}"
        back = {name: {"status": "enabled", "forced_down": False}[name] for name in changes}
        for wanted, last in ((changes, False), (back, True)):
            if last:
                yield
            answer = self.admin.compute.put(path, json=wanted, microversion="2.53")
            assert answer.status_code == 200, answer.text

    @contextmanager
    def passing_flavor(self, name: str, **fields: Any) -> Iterator[str]:
        """The id of a flavor that is there for a while."""
        specs = fields.pop("extra_specs", None)
        made = self.admin.compute.create_flavor(
            **{"name": name, "flavorid": name, "ram": 128, "vcpus": 1, "disk": 1, **fields}
        )
        try:
            if specs:
                self.admin.compute.create_flavor_extra_specs(made, specs)
            yield made.id
        finally:
            self.admin.compute.delete_flavor(made)

    def ask_for(self, *, who: Any = None, **fields: Any) -> Any:
        """A server that is to be built, whatever becomes of it: with one port, and the demo image unless devices are given."""
        given = {"name": "server", "flavor_id": "any.small", "networks": [{"uuid": self.network_id}], **fields}
        if "block_device_mapping" not in given:
            given.setdefault("image_id", self.image_id)
        return (who or self.member).compute.create_server(**given)

    def image_with(self, name: str, **fields: Any) -> Any:
        """A copy of the demo image with other properties."""
        data = self.member.image.download_image(self.image_id).content
        given = {"disk_format": "raw", "container_format": "bare", **fields}
        return self.member.image.create_image(name=name, data=data, wait=True, validate_checksum=False, **given)

    def gone(self, server: Any) -> None:
        """Waits until a deleted server is gone for good."""
        until(lambda: self.admin.compute.find_server(server.id), lambda found: found is None, "the server to go")
        self.settle()
