"""The chapter of a server that does not boot at its new host: its owner rescues it and repairs it at its console."""

from __future__ import annotations

from causeway.cli.demo.chapter import Traveller
from causeway.cli.demo.neighbour import NeighbourChapter
from causeway.cli.demo.picture import picture_of
from causeway.cli.demo.serial_console import SerialConsole
from causeway.operators_page.cloud import serial_page

# Where the boot loader of the demonstration's image reads what to boot.
_LOADER = "boot/extlinux/extlinux.conf"
_BREAK = f"test -e /disk/loader || cp /disk/{_LOADER} /disk/loader; rm -f /disk/{_LOADER}; sync; test -s /disk/loader"
_REPAIR = (
    "mkdir -p /own; test -e /own/boot || mount -t ext4 /dev/vdb1 /own; "
    f"cp /own/loader /own/{_LOADER}; sync; grep -q LABEL /own/{_LOADER}"
)


class RescuingChapter(NeighbourChapter):
    """Its part of the story."""

    def _rescue(self, server: Traveller, image: str) -> None:
        """``server`` runs on gen1; it has a volume. It is deleted at the end."""
        check, run = self._screen.check, self._client.run
        with self._open_console(server) as console:
            check("its owner breaks its boot loader, at its serial console", console.do(_BREAK), f"/{_LOADER} is gone")
        self._watched(server, {"VERIFY_RESIZE"}, ("resize", "--flavor", "gen2.small", server.name))
        self._watched(server, {"ACTIVE", "SHUTOFF"}, ("resize", "confirm", server.name))
        self._arrived(server, "cell2")
        self._screen.note("It was copied as it was, so it can't boot there. Nothing answers at its console.")

        self._watched(server, {"RESCUE"}, ("rescue", "--image", image, server.name))
        # Before it is used: a serial console has one user at a time.
        picture = self._cloud.state.path / "story-console.png"
        title = picture_of(serial_page(self._console_url(server)), picture, self._screen)
        if title is not None:
            check("its console opens in a browser", title.startswith("Serial console"), str(picture))
        with self._open_console(server) as console:
            check("it boots a rescue disk, and its own disk is its second one", console.do("test -b /dev/vdb1"))
            check("its owner repairs the boot loader there", console.do(_REPAIR), _LOADER)
        watch = self._watched(server, {"ACTIVE"}, ("unrescue", server.name))
        check("the server is ACTIVE again", watch.statuses[-1] == "ACTIVE")
        before, now = server.at_first, self._console(server, after_boot=server.at_first.boot)
        check(
            "it boots from its own disk, with all that was on it",
            (now.first("vda"), now.boot) == (before.first("vda"), before.boot + 1),
            now.first("vda"),
        )
        self._answers(server, now)
        run("server", "delete", "--wait", server.name)

    def _console_url(self, server: Traveller) -> str:
        return str(self._client.json("console", "url", "show", "--serial", server.name)["url"])

    def _open_console(self, server: Traveller) -> SerialConsole:
        return SerialConsole(self._console_url(server))
