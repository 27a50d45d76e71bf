"""``causeway adopt host-config``: the files that a host needs, from its nova.conf."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from causeway.cli.adopt.group import adopt
from causeway.cli.adopt.nova_config import nova_config_option
from causeway.cli.processes import failures_reported
from causeway.cli.secret_urls import url_option

if TYPE_CHECKING:
    from causeway.adopt import Judged
    from causeway.adopt.host_config import HostConfig

_CONFIG, _LOCAL, _UNIT = "causeway-compute.conf", "causeway-compute.local.conf", "causeway-compute.service"
_FENCE = "nova-compute-fence.conf"
_SECRET, _PUBLIC = 0o600, 0o644
_UNITS = "/etc/systemd/system"
_OWN_OPTIONS = """\
# What this host has of its own: it is read after causeway-compute.conf, and wins. `causeway adopt host-config` has made it and
# does not change it any more.

[DEFAULT]
# CHANGE: the queue of this host's cell, in a virtual host of Causeway's own, never Nova's.
# transport_url = rabbit://causeway:QUEUE_PASSWORD@controller:5672/cell1

# An account for hosts, which is no administrator (also in [placement], and in [glance], [neutron], [cinder] if these have one).
[service_user]
# username = nova-compute
# password = HOST_PASSWORD

[rpc_signatures]
# private_key = /etc/causeway/keys/private/hosts/HOST.pem
# trusted_keys = /etc/causeway/keys/trusted
"""


@dataclass(frozen=True)
class _Done:
    written: list[Path]
    unchanged: list[Path]
    to_do: list[str]


@adopt.command("host-config")
@nova_config_option(
    "The nova.conf of this host's nova-compute; may be given several times, later ones win.", name="files"
)
@click.option(
    "--override",
    "overrides",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="More options in the same form, which win: for values that are refused. May be given several times.",
)
@click.option(
    "--output",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder for the files, such as /etc/causeway; none of Nova's.",
)
@url_option("--transport-url", "The queue of this host's cell: rabbit://user:password@host:5672/cell1.")
@click.option(
    "--state-path",
    default=Path("/var/lib/causeway"),
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where Causeway keeps its own files on this host.",
)
@click.option(
    "--program",
    default=Path(sys.executable).parent / "causeway",
    show_default="the one that runs",
    type=click.Path(path_type=Path),
    help="The program that the unit starts.",
)
@click.option("--nova-unit", default="nova-compute.service", show_default=True, help="Nova's unit on this host.")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
def host_config(
    files: tuple[Path, ...],
    overrides: tuple[Path, ...],
    output: Path,
    transport_url: str | None,
    state_path: Path,
    program: Path,
    nova_unit: str,
    as_json: bool,
) -> None:
    """Write what this host needs for Causeway's compute service, from its nova.conf, into a folder.

    Options, units of systemd, and a file for what is the host's own, which is never changed again. Nothing of Nova's is written,
    nothing is started, no value is shown. It may be repeated: then it writes what has changed. Exit status 1, and nothing is
    written, if no compute would start with a value.
    """
    from causeway.adopt import host_config as made_of

    _refuse_others_folders(output, files)
    if not (state_path.is_absolute() and program.is_absolute()):
        raise click.UsageError("--state-path and --program must be absolute paths.")
    with failures_reported():
        transport_url = transport_url or _queue_written(output / _CONFIG)
        made = made_of.make(files, overrides, state_path=state_path, transport_url=transport_url)
        _refuse_folder(output, made.nova_folders)
        done = _write(output.absolute(), made, state_path, program, nova_unit)
    click.echo(_as_json(made, done) if as_json else "\n".join(_lines(made, done)))


def _refuse_others_folders(output: Path, files: Sequence[Path]) -> None:
    _refuse_folder(output, [path.absolute().parent for path in files])


def _refuse_folder(output: Path, folders: Sequence[Path]) -> None:
    for folder in folders:
        if output.resolve().is_relative_to(folder.resolve()):
            raise click.UsageError(
                f"--output {output} is in {folder}, which is Nova's: give a folder of Causeway's own."
            )


def _queue_written(config: Path) -> str | None:
    """The URL that an earlier run was given: without it this host would have no queue any more."""
    from causeway.adopt import nova_values

    if not config.exists():
        return None
    found = nova_values.sections(config).get("DEFAULT", {}).get("transport_url")
    return found[-1].replace("$$", "$") if found else None


def _write(output: Path, made: HostConfig, state_path: Path, program: Path, nova_unit: str) -> _Done:
    from causeway import durable
    from causeway.adopt import host_units
    from causeway.compute.adopting.ownership import MARKER

    config, local = output / _CONFIG, output / _LOCAL
    marker = state_path / "hosts" / made.host / MARKER
    wanted = {
        config: (made.text, _SECRET),
        output / _UNIT: (
            host_units.service(program, [config, local], state_path, made.folders, nova_unit),
            _PUBLIC,
        ),
        output / _FENCE: (host_units.fence(marker), _PUBLIC),
    }
    if not local.exists():
        wanted[local] = (_OWN_OPTIONS, _SECRET)
    done = _Done([], [], [])
    try:
        durable.make_folder(output)
        for path, (text, mode) in wanted.items():
            if _is_there(path, text, mode):
                done.unchanged.append(path)
                continue
            durable.write(path, text, mode=mode)
            path.chmod(mode)
            done.written.append(path)
    except OSError as failure:
        raise click.ClickException(f"{failure.filename}: {failure.strerror}.") from failure
    if local not in wanted:
        done.unchanged.append(local)
    done.to_do.extend(_to_do(made, local, output, nova_unit))
    return done


def _is_there(path: Path, text: str, mode: int) -> bool:
    try:
        return path.read_text() == text and path.stat().st_mode & 0o7777 == mode
    except (FileNotFoundError, UnicodeDecodeError):
        return False


def _to_do(made: HostConfig, local: Path, output: Path, nova_unit: str) -> Iterator[str]:
    from causeway.adopt import nova_values

    own = nova_values.sections(local)
    if not made.has_queue and "transport_url" not in own.get("DEFAULT", {}):
        yield f"Write [DEFAULT] transport_url, the queue of this host's cell, into {local}."
    if not made.is_host_given:
        yield (
            f"The files do not name the host: it is {made.host}, this machine's name. If Nova knows it by another one, give"
            " [DEFAULT] host in a file with --override."
        )
    accounts = [group for group in made.accounts if "password" not in own.get(group, {})]
    if accounts:
        named = ", ".join(f"[{group}]" for group in accounts)
        yield f"{named}: Nova's account, often an administrator's. Give hosts one of their own, in {local}."
    yield (
        f"Install the units: {output / _UNIT} into {_UNITS}, {output / _FENCE} as {_UNITS}/{nova_unit}.d/causeway.conf; then"
        " systemctl daemon-reload."
    )
    yield "systemctl start causeway-compute: it only looks, beside nova-compute too, until `causeway adopt host` takes the host."


def _as_json(made: HostConfig, done: _Done) -> str:
    def listed(found: Sequence[Judged]) -> list[dict[str, str]]:
        return [
            {"group": one.group, "option": one.name, "verdict": one.verdict.value, "note": one.note} for one in found
        ]

    return json.dumps(
        {
            "host": made.host,
            "written": list(map(str, done.written)),
            "unchanged": list(map(str, done.unchanged)),
            "copied": listed(made.copied),
            "left_out": listed(made.left_out),
            "to_do": done.to_do,
        },
        indent=2,
    )


def _lines(made: HostConfig, done: _Done) -> Iterator[str]:
    yield f"Host {made.host}"
    yield from (f"  written: {path}" for path in done.written)
    yield from (f"  as it was: {path}" for path in done.unchanged)
    differing = [one for one in made.copied if one.verdict.value == "differs"]
    yield f"Options: {len(made.copied)} copied, {len(made.left_out)} left out."
    yield from _section("Copied, and different from Nova", [f"{one}: {one.note}" for one in differing])
    yield from _section("Left out", [f"{one}: {one.note}" for one in made.left_out if one.note])
    yield from _section("Left to do", done.to_do)


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"{title}:"
        yield from (f"  {line}" for line in lines)


__all__ = ["host_config"]
