"""What the nova.conf of a compute becomes: the options of Causeway's compute service on the same host.

What means the same, or almost, is copied as it is written. References to options that are not copied are replaced by what
they stand for. Left out are what has no effect, what only other roles read (with their passwords), and what must be Causeway's
own: queue, databases, folders, logs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from causeway.adopt import nova_values
from causeway.adopt.nova_values import Place, UnknownReference
from causeway.adopt.options import Judged, Verdict, judge
from causeway.conf import many_valued, names_read, of_library, read_unchecked
from causeway.errors import Misconfigured

_DEFAULT = "DEFAULT"
_NO_DATABASE = "Computes have no database."
_OTHER_ROLES = "Computes do not read it."
_OWN_FOLDERS = "Causeway has its own folders."
_LOGS = "Nova's logs are Nova's. Causeway's are in the journal of systemd."
# Groups that no compute reads; some have passwords. A group that another one names as its auth_section is copied.
_OF_OTHER_ROLES = {
    "api_database": _NO_DATABASE,
    "database": _NO_DATABASE,
    "barbican_service_user": "Hosts have no account in the key manager.",
    "oslo_messaging_notifications": "Computes send no notifications.",
    **dict.fromkeys(
        (
            "api",
            "barbican",
            "conductor",
            "console",
            "consoleauth",
            "filter_scheduler",
            "key_manager",
            "keystone",
            "keystone_authtoken",
            "notifications",
            "oslo_limit",
            "oslo_middleware",
            "oslo_policy",
            "quota",
            "scheduler",
            "vendordata_dynamic_auth",
        ),
        _OTHER_ROLES,
    ),
}
_LEFT_OUT: dict[Place, str] = {
    (_DEFAULT, "transport_url"): "It is Nova's queue.",
    (_DEFAULT, "state_path"): _OWN_FOLDERS,
    ("oslo_concurrency", "lock_path"): _OWN_FOLDERS,
    ("os_brick", "lock_path"): _OWN_FOLDERS,
    (_DEFAULT, "log_dir"): _LOGS,
    (_DEFAULT, "log_file"): _LOGS,
    (_DEFAULT, "log_config_append"): _LOGS,
    ("upgrade_levels", "compute"): "Its versions are Nova's.",
    **dict.fromkeys(
        (
            (_DEFAULT, "force_config_drive"),
            (_DEFAULT, "max_concurrent_live_migrations"),
            (_DEFAULT, "reclaim_instance_interval"),
            (_DEFAULT, "rescue_timeout"),
            (_DEFAULT, "sync_power_state_interval"),
            ("libvirt", "rescue_image_id"),
            ("neutron", "metadata_proxy_shared_secret"),
            ("neutron", "service_metadata_proxy"),
        ),
        "Computes do not read it: write it into the file of API, metadata service or conductors.",
    ),
}
#: how Causeway's compute finds what Nova left: Nova's folders, where the files do not name them
NOVA_FOLDERS: dict[Place, str] = {
    (_DEFAULT, "instances_path"): "instances",
    ("libvirt", "nfs_mount_point_base"): "mnt",
}


@dataclass
class HostConfig:
    """``text``: the file. ``folders``: those that must be mounted before the service starts, Causeway's own first.

    ``accounts``: the groups with a password of Nova's.
    """

    host: str
    text: str
    folders: list[Path]
    nova_folders: list[Path]
    has_queue: bool
    is_host_given: bool
    accounts: list[str] = field(default_factory=list)
    copied: list[Judged] = field(default_factory=list)
    left_out: list[Judged] = field(default_factory=list)


def make(
    files: Sequence[Path], overrides: Sequence[Path] = (), *, state_path: Path, transport_url: str | None = None
) -> HostConfig:
    """``files``: those of the nova-compute of a host; ``overrides``: more in the same form, which win, and are not Nova's.

    Raises Misconfigured if the files are not a compute's, can't be read, or have a value with which a compute would not start.
    """
    return _Maker(files, overrides, state_path, transport_url).make()


class _Maker:
    def __init__(
        self, files: Sequence[Path], overrides: Sequence[Path], state_path: Path, transport_url: str | None
    ) -> None:
        self._files, self._state_path, self._transport_url = files, state_path, transport_url
        everything = [*files, *overrides]
        self._judged = judge(everything).options
        self._given = nova_values.read(everything)
        self._overridden = {group for group, name in nova_values.read(overrides) if name == "password"}
        self._conf, _invalid = read_unchecked(everything)
        self._known = names_read(self._conf)
        self._many = many_valued(self._conf)
        # Under its present name if it is there under several.
        self._plain: dict[Place, Place] = {}
        for written in self._given:
            place = self._place(*written)
            if place not in self._plain or written == place:
                self._plain[place] = written
        self._copied: set[Place] = set()

    def make(self) -> HostConfig:
        if (_DEFAULT, "compute_driver") not in self._plain and not any(group == "libvirt" for group, _ in self._plain):
            raise Misconfigured("These files are not a compute's: they have neither compute_driver nor [libvirt].")
        if self._transport_url is not None and [self._transport_url] == self._values((_DEFAULT, "transport_url")):
            raise Misconfigured(
                "The URL is that of Nova's queue: Causeway needs a virtual host, or a broker, of its own."
            )
        nova_state = self._path((_DEFAULT, "state_path"))
        if nova_state is None:
            raise Misconfigured(
                "These files do not set [DEFAULT] state_path: give the file that does as well, such as"
                " /usr/share/nova/nova-dist.conf."
            )
        if nova_state == self._state_path:
            raise Misconfigured(f"{nova_state} is Nova's: Causeway's state_path must be another folder.")
        copied, left_out = self._split()
        self._copied = {self._place(one.group, one.name) for one in copied}
        folders = {place: self._path(place) or nova_state / name for place, name in NOVA_FOLDERS.items()}
        nova_folders = [nova_state, *dict.fromkeys(path.absolute().parent for path in self._files)]
        own = {
            (_DEFAULT, "host"): self._conf.host,
            (_DEFAULT, "state_path"): str(self._state_path),
            **{place: str(path) for place, path in folders.items()},
            ("adopt", "nova_state_path"): str(nova_state),
            ("adopt", "nova_config_dirs"): ",".join(map(str, nova_folders[1:])),
            # Of os-brick, which finds no lock without it.
            ("oslo_concurrency", "lock_path"): str(self._state_path / "locks"),
        }
        if self._transport_url is not None:
            own[_DEFAULT, "transport_url"] = self._transport_url
        lines = {place: [nova_values.line(place[1], nova_values.escaped(value))] for place, value in own.items()}
        written = []
        for judged in copied:
            place = self._place(judged.group, judged.name)
            if place in lines:
                continue
            try:
                comment = [f"# Differs from Nova: {judged.note}"] * (judged.verdict is Verdict.DIFFERS)
                lines[place] = [*comment, *self._lines(place)]
                written.append(judged)
            except UnknownReference as unknown:
                why = f"Its value names {unknown}, which these files do not set: write it yourself."
                left_out.append(Judged(judged.group, judged.name, judged.verdict, why))
        return HostConfig(
            self._conf.host,
            self._text(lines),
            [self._state_path, nova_state, *folders.values()],
            nova_folders,
            has_queue=self._transport_url is not None,
            is_host_given=(_DEFAULT, "host") in self._plain,
            accounts=sorted({one.group for one in written if one.name == "password"} - self._overridden),
            copied=written,
            left_out=sorted(left_out, key=lambda one: (one.group, one.name)),
        )

    def _split(self) -> tuple[list[Judged], list[Judged]]:
        """What to copy, and what not, with the reason."""
        copied, left_out, refused = [], [], []
        sections = {value for (_, name), values in self._given.items() if name == "auth_section" for value in values}
        for one in self._judged:
            place = self._place(one.group, one.name)
            why = _LEFT_OUT.get(place) or (one.group not in sections and _OF_OTHER_ROLES.get(one.group)) or ""
            if one.verdict is Verdict.NO_EFFECT or why:
                left_out.append(Judged(one.group, one.name, one.verdict, why or one.note))
            elif one.verdict is Verdict.REFUSED:
                refused.append(one)
            else:
                copied.append(one)
        if refused:
            listed = "\n".join(f"  {one}: {one.note}" for one in refused)
            raise Misconfigured(f"No compute starts with these values: nothing is written.\n{listed}")
        return copied, left_out

    def _lines(self, place: Place) -> Iterator[str]:
        values = self._given[self._plain[place]]
        for value in values if place in self._many else values[-1:]:
            yield nova_values.line(place[1], self._replaced(value, place[0]))

    def _replaced(self, value: str, group: str, seen: frozenset[Place] = frozenset()) -> str:
        def meaning(of_group: str, name: str) -> str | None:
            place = (of_group, name) if (of_group, name) in self._plain else (_DEFAULT, name)
            # Libraries read the file with options of their own only.
            if place in self._copied and not of_library(group) and not seen:
                return None
            if place in seen:
                raise UnknownReference(f"${name}")
            if place in self._plain:
                return self._replaced(self._values(place)[-1], place[0], seen | {place})
            if place in self._known and place[1] != "state_path" and not of_library(group) and not seen:
                return None
            raise UnknownReference(f"${name}")

        return nova_values.replace_references(value, group, meaning)

    def _values(self, place: Place) -> list[str]:
        return self._given[self._plain[place]][-1:] if place in self._plain else []

    def _path(self, place: Place) -> Path | None:
        if not (values := self._values(place)) or not values[0]:
            return None
        try:
            return Path(self._replaced(values[0], place[0], frozenset({place})))
        except UnknownReference as unknown:
            raise Misconfigured(f"[{place[0]}] {place[1]} names {unknown}, which these files do not set.") from None

    def _place(self, group: str, name: str) -> Place:
        plain = (group, name.replace("-", "_"))
        return self._known.get(plain, plain)

    def _text(self, lines: Mapping[Place, list[str]]) -> str:
        text = [
            f"# Made by `causeway adopt host-config` of {', '.join(map(str, self._files))}: it is written anew each time.",
            "# What is this host's own belongs into the file that is read after it.",
        ]
        for group in sorted({group for group, _ in lines}, key=lambda each: (each != _DEFAULT, each)):
            text += ["", f"[{group}]"]
            text += [line for place, of_option in lines.items() if place[0] == group for line in of_option]
        return "\n".join(text) + "\n"


__all__ = ["NOVA_FOLDERS", "HostConfig", "make"]
