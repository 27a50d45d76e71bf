"""How users ask for what they do: one call each, and what they note of it."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

from tests.faults.answers import ACCEPTED, Answer, call
from tests.faults.clouds.site import Site
from tests.faults.storm.ledger import EXISTS, Account, Asked, Ledger, Seen, WantedImage

# A disk never becomes smaller. Those of gen1 and gen2 are in one cell each, any.medium may go anywhere.
FLAVORS = {
    "gen1.small": ("gen2.small", "gen1.large", "any.medium"),
    "gen2.small": ("gen1.large", "any.medium"),
    "gen1.large": ("gen2.small", "any.medium", "host2.medium"),
    "host2.medium": ("gen2.small", "gen1.large"),
    "any.medium": ("gen1.large", "gen2.small"),
}
FIRST_FLAVORS = ("gen1.small", "gen2.small", "gen1.large")
# Of backups of one kind so many are kept.
ROTATION = 2
PLUGGED = "plugged by the cloud"


@dataclass(frozen=True)
class Scene:
    """A user in front of a server."""

    site: Site
    account: Account
    ledger: Ledger
    seen: Seen
    dice: random.Random

    def call(self, method: str, path: str, body: Any = None, *, by: Any = None) -> Answer:
        return call(self.site, method, f"/servers/{self.ledger.uuid}{path}", body, by=by)

    def act(self, action: str, arguments: Any = None, *, by: Any = None) -> Answer:
        return self.call("POST", "/action", {action: arguments}, by=by)


# servers that come and go


def create(scene: Scene, deed: str) -> None:
    number, dice = len(scene.account.ledgers) + 1, scene.dice
    ledger = Ledger(f"server-{scene.account.number}-{number}", on_volume=dice.random() < 0.4)
    body: dict[str, Any] = {
        "name": ledger.name,
        "flavorRef": dice.choice(FIRST_FLAVORS),
        "networks": [{"uuid": scene.site.network_id}],
    }
    if ledger.on_volume:
        body["block_device_mapping_v2"] = [scene.site.root_volume(gigabytes=2)]
    else:
        body["imageRef"] = scene.site.image_id
    answer = call(scene.site, "POST", "/servers", {"server": body})
    if answer.is_accepted:
        ledger.uuid = json.loads(answer.text)["server"]["id"]
    ledger.note(Asked(deed, answer, value=ledger.name, action="create"))
    ledger.allowed = {
        EXISTS: {True} if answer.is_accepted else {True, False} if answer.is_lost else {False},
        ("name", ""): {ledger.name},
    }
    scene.account.ledgers.append(ledger)


def delete(scene: Scene, deed: str) -> None:
    answer = scene.call("DELETE", "")
    scene.ledger.note(Asked(deed, answer))
    if answer.is_accepted:
        scene.ledger.allowed[EXISTS] = {False}
    elif answer.is_lost:
        scene.ledger.allowed[EXISTS] = scene.ledger.allowed[EXISTS] | {False}


# actions: what becomes of the server is in its history


def _action(scene: Scene, deed: str, action: str, arguments: Any = None, *, by: Any = None) -> Answer:
    answer = scene.act(action, arguments, by=by)
    scene.ledger.note(Asked(deed, answer, value=arguments, action=action))
    return answer


def resize(scene: Scene, deed: str) -> None:
    assert scene.seen.record is not None
    wanted = scene.dice.choice(FLAVORS[scene.seen.record.flavor.flavorid])
    _action(scene, deed, "resize", {"flavorRef": wanted})


def plainly(action: str) -> Any:
    """As the server's user, without arguments."""
    return lambda scene, deed: _action(scene, deed, action)


def as_administrator(action: str, arguments: Any = None) -> Any:
    return lambda scene, deed: _action(scene, deed, action, arguments, by=scene.site.admin)


def migrate_live(scene: Scene, deed: str) -> None:
    """To another host of the cell, or to one of another cell, which not every flavor may use."""
    host = scene.dice.choice([None, "cell1-host1", "cell2-host1"])
    arguments = {"host": host, "block_migration": "auto"}
    answer = scene.act("os-migrateLive", arguments, by=scene.site.admin)
    scene.ledger.note(Asked(deed, answer, value=arguments, action="live-migration"))


def reboot(scene: Scene, deed: str) -> None:
    _action(scene, deed, "reboot", {"type": "HARD"})


def rebuild(scene: Scene, deed: str) -> None:
    answer = _action(scene, deed, "rebuild", {"imageRef": scene.site.image_id})
    if answer.is_accepted or answer.is_lost:
        scene.ledger.mark = None


def evacuate(scene: Scene, deed: str) -> None:
    answer = _action(scene, deed, "evacuate", {}, by=scene.site.admin)
    if (answer.is_accepted or answer.is_lost) and not scene.ledger.on_volume:
        scene.ledger.mark = None


def cancel(scene: Scene, deed: str) -> None:
    """Whatever is under way, as an administrator."""
    site, path = scene.site, f"/os-causeway/servers/{scene.ledger.uuid}/operations"
    listed = call(site, "GET", path, by=site.admin)
    under_way = [
        each["id"]
        for each in (json.loads(listed.text)["operations"] if listed.is_accepted else [])
        if each.get("ended_at") is None
    ]
    if under_way:
        scene.ledger.note(Asked(deed, call(site, "DELETE", f"/os-causeway/operations/{under_way[0]}", by=site.admin)))


def create_image(scene: Scene, deed: str) -> None:
    name = f"image {len(scene.ledger.images)} of {scene.ledger.name}"
    answer = _action(scene, deed, "createImage", {"name": name})
    scene.ledger.images.append(WantedImage(name, answer, scene.ledger.mark))


def create_backup(scene: Scene, deed: str) -> None:
    name = f"backup {len(scene.ledger.images)} of {scene.ledger.name}"
    arguments = {"name": name, "backup_type": "daily", "rotation": ROTATION}
    answer = _action(scene, deed, "createBackup", arguments)
    scene.ledger.images.append(WantedImage(name, answer, scene.ledger.mark, is_backup=True))


def write(scene: Scene, deed: str) -> None:
    """A program in the guest writes to its disk: that must be there from now on. No request of anybody."""
    ledger = scene.ledger
    assert ledger.uuid is not None
    ledger.writes += 1
    mark = f"data {ledger.writes} of {ledger.uuid}"
    scene.site.guests.mark(ledger.uuid, mark)
    ledger.mark = mark
    ledger.note(Asked(deed, ACCEPTED, value=mark))


# values: the last one that was accepted is the one that is there


def _value(scene: Scene, deed: str, which: str, value: Any, method: str, path: str, body: Any = None) -> None:
    scene.ledger.note_value(Asked(deed, scene.call(method, path, body), which, value))


def rename(scene: Scene, deed: str) -> None:
    name = f"name{scene.dice.randrange(10**6)}"
    _value(scene, deed, "", name, "PUT", "", {"server": {"name": name}})


def metadata(scene: Scene, deed: str) -> None:
    key, value = scene.dice.choice("abc"), str(scene.dice.randrange(10**6))
    if scene.dice.random() < 0.25:
        _value(scene, deed, key, None, "DELETE", f"/metadata/{key}")
    else:
        _value(scene, deed, key, value, "PUT", f"/metadata/{key}", {"meta": {key: value}})


def tag(scene: Scene, deed: str) -> None:
    name, there = scene.dice.choice(("x", "y", "z")), scene.dice.random() < 0.6
    _value(scene, deed, name, True if there else None, "PUT" if there else "DELETE", f"/tags/{name}")


def volume(scene: Scene, deed: str) -> None:
    """Attaches one of the user's volumes, or detaches it."""
    chosen = scene.dice.choice(scene.account.volumes)
    if True in scene.ledger.may_be(deed, chosen):
        _value(scene, deed, chosen, None, "DELETE", f"/os-volume_attachments/{chosen}")
    else:
        body = {"volumeAttachment": {"volumeId": chosen}}
        _value(scene, deed, chosen, True, "POST", "/os-volume_attachments", body)


def port(scene: Scene, deed: str) -> None:
    """Plugs one of the user's ports, or unplugs it."""
    chosen = scene.dice.choice(scene.account.ports)
    if True in scene.ledger.may_be(deed, chosen):
        _value(scene, deed, chosen, None, "DELETE", f"/os-interface/{chosen}")
    else:
        _value(scene, deed, chosen, True, "POST", "/os-interface", {"interfaceAttachment": {"port_id": chosen}})


def network(scene: Scene, deed: str) -> None:
    """Plugs a port that is made for it, or unplugs one that was. Whose answer is lost does not know its id."""
    plugged = [which for (concern, which), values in scene.ledger.allowed.items() if concern == deed and True in values]
    if len(plugged) > 1:
        _value(scene, deed, plugged[0], None, "DELETE", f"/os-interface/{plugged[0]}")
        return
    answer = scene.call("POST", "/os-interface", {"interfaceAttachment": {"net_id": scene.site.network_id}})
    if answer.is_accepted:
        made = json.loads(answer.text)["interfaceAttachment"]["port_id"]
        scene.ledger.note_value(Asked(deed, answer, made, True))
    else:
        scene.ledger.note(Asked(deed, answer))
