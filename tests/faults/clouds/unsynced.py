"""What a power cut takes: everything that a process wrote and nobody had synced.

The process runs under strace, which writes down each system call that changes files or syncs them. `Trace.cut` then changes the
folder that the killed process left into one that the disk could have had when the power went, and always the worst that the
calls allow:

- a file whose content was never synced since it was made or emptied has no content;
- a file or folder that was made or renamed while its folder was not synced afterwards is not there, or has its old name;
- frames of SQLite's write-ahead log that were not synced are zeros, and its shared memory is gone.

Left alone: a file that replaced another one without a sync of the folder (the old content is not known any more), deletions
that may come back, what SQLite wrote into a database itself (its log has it, or it was synced), and what guests and logs append.
So this finds what is missing in what is made, renamed and committed; not every order in which a disk may write.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

CALLS = (
    "open,openat,creat,write,pwrite64,writev,pwritev,sendfile,copy_file_range,truncate,ftruncate,rename,renameat,renameat2,"
    "link,linkat,mkdir,mkdirat,unlink,unlinkat,rmdir,fsync,fdatasync,syncfs,sync,sync_file_range"
)
_LINE = re.compile(r"^(?P<pid>\d+) +(?:<\.\.\. (?P<resumed>\w+) resumed>|(?P<name>\w+)\()(?P<rest>.*)$")
_RESULT = re.compile(r"\) += (?P<value>-?\d+)(?:<(?P<path>[^>]*)>)?")
_FD = re.compile(r"^\d+<(?P<path>[^>]*)>")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_AT = re.compile(r"^(?:AT_FDCWD|\d+)<(?P<path>[^>]*)>")
# What nobody counts on after a power cut.
LOGS = (".log", ".hits", "stderr", "faults.yaml", "faults.new")


def command(log: Path, command: list[str]) -> list[str]:
    """Runs ``command`` under strace as if it was not: the process is the caller's own child."""
    return [
        "strace",
        "-D",
        "-f",
        "--seccomp-bpf",
        "-y",
        "-s",
        "0",
        "-qq",
        "-o",
        str(log),
        "-e",
        f"trace={CALLS}",
        *command,
    ]


@dataclass
class _Call:
    """``began`` and ``ended``: numbers of lines. ``value`` None: the process was killed in it."""

    name: str
    arguments: str
    began: int
    ended: int
    value: int | None
    path: str | None


def calls(lines: Iterator[str]) -> Iterator[_Call]:
    """The calls of all threads in the order of their ends; then those that did not end."""
    open_calls: dict[str, tuple[str, str, int]] = {}
    number = 0
    for number, line in enumerate(lines):
        found = _LINE.match(line)
        if found is None:
            continue
        pid, rest = found["pid"], found["rest"]
        if found["resumed"]:
            name, begun, began = open_calls.pop(pid, (found["resumed"], "", number))
            rest = begun + rest
        else:
            name, began = found["name"], number
        if rest.endswith("<unfinished ...>"):
            open_calls[pid] = (name, rest.removesuffix("<unfinished ...>").rstrip(), began)
            continue
        result = _RESULT.search(rest)
        if result is not None:
            yield _Call(name, rest, began, number, int(result["value"]), result["path"])
    for name, rest, began in open_calls.values():
        yield _Call(name, rest, began, number + 1, None, None)


@dataclass
class _Name:
    """A name that its folder may not have on the disk; ``before``: the name it had there."""

    path: str
    at: int
    before: str | None = None
    replaced: bool = False


@dataclass
class Trace:
    """What was not synced in ``folder``. ``known``: what was there, and on the disk, when the process was started."""

    folder: Path
    known: set[str] = field(default_factory=set)
    # file -> number of the line since which its content is not on the disk
    contents: dict[str, int] = field(default_factory=dict)
    # write-ahead log -> (line, from, to)
    frames: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)
    names: list[_Name] = field(default_factory=list)

    @classmethod
    def of(cls, folder: Path) -> Trace:
        return cls(folder, {str(path) for path in folder.rglob("*")})

    def read(self, log: Path) -> None:
        with log.open(errors="replace") as lines:
            for call in calls(lines):
                if call.value is None or call.value >= 0:
                    self._take(call)

    def _take(self, call: _Call) -> None:
        name = call.name
        if name in ("open", "openat", "creat"):
            self._opened(call)
        elif name in ("write", "pwrite64", "writev", "pwritev", "sendfile", "copy_file_range"):
            self._written(call)
        elif name.startswith("rename") and call.value is not None:
            self._renamed(call)
        elif name.startswith("mkdir") and call.value is not None:
            self._made(_paths(call)[0], call)
        elif name in ("unlink", "unlinkat", "rmdir") and call.value is not None:
            self._deleted(_paths(call)[0])
        elif name in ("fsync", "fdatasync") and call.value is not None:
            self._synced(call)
        elif name in ("sync", "syncfs") and call.value is not None:
            self.contents = {path: at for path, at in self.contents.items() if at > call.began}
            self.frames = {
                path: [each for each in frames if each[0] > call.began] for path, frames in self.frames.items()
            }
            self.names = [each for each in self.names if each.at > call.began]

    def _concerns(self, path: str) -> bool:
        return path.startswith(f"{self.folder}/") and not path.endswith(LOGS) and not path.endswith("-shm")

    def _opened(self, call: _Call) -> None:
        path = call.path
        if path is None or not self._concerns(path):
            return
        is_new = "O_CREAT" in call.arguments and path not in self.known
        if is_new:
            self._made(path, call)
        if "O_TRUNC" in call.arguments or (is_new and "O_APPEND" not in call.arguments):
            self.contents[path] = call.ended

    def _made(self, path: str, call: _Call) -> None:
        if self._concerns(path) and path not in self.known:
            self.known.add(path)
            self.names.append(_Name(path, call.ended))

    def _written(self, call: _Call) -> None:
        found = _FD.match(call.arguments)
        if found is None or not self._concerns(found["path"]):
            return
        path = found["path"]
        if path.endswith("-wal"):
            numbers = re.findall(r", (\d+)", call.arguments)
            if call.name == "pwrite64" and len(numbers) >= 2:
                size, start = int(numbers[-2]), int(numbers[-1])
                self.frames.setdefault(path, []).append((call.ended, start, start + size))
        elif path in self.contents:
            self.contents[path] = call.ended

    def _renamed(self, call: _Call) -> None:
        before, after = _paths(call)[:2]
        if not self._concerns(after) and not self._concerns(before):
            return
        moved = _mover(before, after)
        replaced = after in self.known
        if replaced:
            self.contents.pop(after, None)
        self.contents = {moved(path): at for path, at in self.contents.items()}
        self.frames = {moved(path): frames for path, frames in self.frames.items()}
        self.known = {moved(path) for path in self.known}
        for each in self.names:
            each.path = moved(each.path)
        temporary = next((each for each in self.names if each.path == after and each.before is None), None)
        if temporary is not None:
            # Made and renamed before its folder was synced: the disk has neither name.
            temporary.at, temporary.replaced = call.ended, replaced
            self.names = [each for each in self.names if each is temporary or each.path != after]
            return
        self.names = [each for each in self.names if each.path != after]
        self.names.append(_Name(after, call.ended, before, replaced))

    def _deleted(self, path: str) -> None:
        inside = f"{path}/"
        gone: Callable[[str], bool] = lambda other: other == path or other.startswith(inside)  # noqa: E731
        self.known = {other for other in self.known if not gone(other)}
        self.contents = {other: at for other, at in self.contents.items() if not gone(other)}
        self.frames = {other: frames for other, frames in self.frames.items() if not gone(other)}
        self.names = [each for each in self.names if not gone(each.path)]

    def _synced(self, call: _Call) -> None:
        found = _FD.match(call.arguments)
        if found is None:
            return
        path = found["path"]
        if self.contents.get(path, call.began) < call.began:
            del self.contents[path]
        if path in self.frames:
            self.frames[path] = [each for each in self.frames[path] if each[0] > call.began]
        self.names = [each for each in self.names if each.at > call.began or str(Path(each.path).parent) != path]

    def cut(self) -> list[str]:
        """Takes what was not synced; returns what that was, for whoever looks for a cause."""
        taken = []
        for path in self.folder.rglob("*-shm"):
            path.unlink()
        for name, frames in self.frames.items():
            if frames and Path(name).exists():
                _zero(Path(name), frames)
                taken.append(f"{len(frames)} writes to {name}")
        for name in self.contents:
            if Path(name).is_file():
                Path(name).write_bytes(b"")
                taken.append(f"content of {name}")
        for each in reversed(self.names):
            path = Path(each.path)
            if each.replaced or not path.exists():
                continue
            if each.before is not None:
                if Path(each.before).exists() or not Path(each.before).parent.is_dir():
                    continue
                path.rename(each.before)
            elif path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
            taken.append(f"name {each.path}" + (f", which is {each.before}" if each.before else ""))
        return taken


def _zero(path: Path, frames: list[tuple[int, int, int]]) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        for _at, start, end in frames:
            file.seek(start)
            file.write(bytes(max(0, min(end, size) - start)))


def _paths(call: _Call) -> list[str]:
    """The names in the arguments, absolute; those of ``...at`` are given with their folder."""
    found, rest = [], call.arguments
    while rest:
        at = _AT.match(rest)
        folder = at["path"] if at else ""
        quoted = _QUOTED.search(rest)
        if quoted is None:
            break
        found.append(str(Path(folder) / quoted[1]))
        rest = rest[quoted.end() :].lstrip(", ")
    return found


def _mover(before: str, after: str) -> Callable[[str], str]:
    inside = f"{before}/"

    def moved(path: str) -> str:
        return after + path[len(before) :] if path == before or path.startswith(inside) else path

    return moved
