"""The demonstration's options, its set-up and its end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NoReturn

import click
import openstack.exceptions
import platformdirs
from keystoneauth1.exceptions import ClientException
from requests import RequestException

from causeway.cli.demo.chapter import MoveFailed
from causeway.cli.demo.client import CommandFailed
from causeway.cli.demo.cloud import CloudFailed, DemoCloud
from causeway.cli.demo.screen import Screen
from causeway.cli.demo.story import Story
from causeway.cli.demo.watch import Timeout
from causeway.embedded.settings import StateDir
from causeway.errors import CausewayError

FAILURES = (
    CausewayError,
    ClientException,
    CloudFailed,
    CommandFailed,
    MoveFailed,
    OSError,
    RequestException,
    Timeout,
    openstack.exceptions.SDKException,
)


@click.command()
@click.option("--driver", type=click.Choice(["libvirt", "simulated"]), help="Default: libvirt where it can run.")
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the cloud keeps everything between runs. Default: a folder of its own in the user's cache.",
)
@click.option("--keep", is_flag=True, help="Leave the cloud running, to look around in it.")
def demo(driver: str | None, state_dir: Path | None, keep: bool) -> None:
    """Show and check the main job: servers go to another cell, and one back; live to another host of its cell."""
    screen, began = Screen(), time.monotonic()
    driver = driver or _driver(screen)
    folder = state_dir or platformdirs.user_cache_path("causeway") / f"demo-{driver}"
    cloud = DemoCloud(StateDir(folder.resolve()), driver)
    try:
        _run(cloud, screen, keep)
    except FAILURES as failure:
        screen.check("the story came to its end", False, f"{type(failure).__name__}: {failure}")
    finally:
        if cloud.process is not None and not keep:
            _clean_up(cloud, screen)
    conclude(screen, time.monotonic() - began, driver)


def conclude(screen: Screen, seconds: float, where: str) -> NoReturn:
    """Says how it went and ends the process: with 1 if a check did not hold."""
    for claim in screen.failed:
        screen.console.print(f"[bold red]✗[/] {claim}")
    colour = "red" if screen.failed else "green"
    screen.console.print(
        f"\n[bold {colour}]{screen.held} checks held, {len(screen.failed)} did not[/], in {seconds:.0f} s ({where})."
    )
    raise SystemExit(1 if screen.failed else 0)


def _clean_up(cloud: DemoCloud, screen: Screen) -> None:
    """Stops everything after a story that failed. The same failure may stop this, too."""
    cloud.stop()
    try:
        cloud.stop_hosts()
    except CausewayError as failure:
        screen.check("the hosts stopped", False, f"{failure} {failure.details}")


def _run(cloud: DemoCloud, screen: Screen, keep: bool) -> None:
    screen.heading(f"Causeway: two cells, two {'QEMU' if cloud.real else 'simulated'} hosts in each")
    image = _image(cloud, screen)
    cloud.start(screen)
    Story(cloud, screen, image).run()
    if keep:
        _explain_next_steps(cloud, screen)
        return
    screen.heading("The end")
    with screen.working("The cloud stops"):
        clean = cloud.stop()
        cloud.stop_hosts()
    screen.check("the cloud stopped cleanly", clean)


def _driver(screen: Screen) -> str:
    """Real guests where they can run; else says why not."""
    from causeway.virt.lab.hosts import missing

    if reason := missing():
        screen.console.print(f"{reason} The simulated driver takes their place.")
        return "simulated"
    return "libvirt"


def _image(cloud: DemoCloud, screen: Screen) -> tuple[Path, str]:
    """An image that the cloud's hosts can boot, and its disk format."""
    if cloud.real:
        from causeway.virt.lab.guest_image import build_guest_image

        with screen.working("A small guest image is built (the first time this takes some seconds)"):
            # where `causeway up` looks for it too: it is built once
            return build_guest_image(cloud.state.path / "cache").path, "qcow2"
    path = cloud.state.path / "story-image.raw"
    cloud.state.path.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"A disk image for simulated hosts, uploaded by the demonstration.\n".ljust(65536, b"\0"))
    return path, "raw"


def _explain_next_steps(cloud: DemoCloud, screen: Screen) -> None:
    screen.heading("The cloud keeps running")
    assert cloud.process is not None
    screen.note(f"export OS_CLIENT_CONFIG_FILE={cloud.state.clouds} OS_CLOUD=causeway")
    screen.note("openstack server list")
    screen.note(f"kill {cloud.process.pid}   # stops it; guests keep running and are found again by the next run")
