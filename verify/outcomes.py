"""What came of a part, and the files in which this is kept."""

from __future__ import annotations

import hashlib
import json
import subprocess
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from verify.reading import Counts

ROOT = Path(__file__).resolve().parents[1]
#: written from the outcomes: what they say is of the project without them
WRITTEN = ("docs/verified.md", "docs/verified.json")

Status = Literal["passed", "failed", "timed out", "interrupted", "not run"]


@dataclass
class Outcome:
    """``began`` is in UTC, ISO 8601; ``log`` is the file with all that was printed. ``state``, ``commit``: see `Checkout`.

    ``reason``: why it was not run.
    """

    part: str
    state: str
    commit: str
    status: Status
    exit_status: int
    began: str
    seconds: float
    log: str
    counts: Counts = field(default_factory=Counts)
    reason: str = ""


@dataclass(frozen=True)
class Checkout:
    """``state`` names the contents of all its files. ``changed``: they are not those of ``commit``."""

    state: str
    commit: str
    changed: bool


def checkout(root: Path = ROOT) -> Checkout:
    """The project's files as they are now."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=root, check=True, capture_output=True, text=True, timeout=60
        ).stdout

    names = git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    files = sorted({root / name for name in names if name and name not in WRITTEN})
    state = hashlib.sha256()
    for file in files:
        if file.is_file():
            state.update(f"{file.relative_to(root)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    changed = git("status", "--porcelain", "--", ".", *(f":!{name}" for name in WRITTEN))
    return Checkout(state.hexdigest()[:16], git("rev-parse", "HEAD").strip(), bool(changed.strip()))


class Kept:
    """The outcomes of one state of the project, a file per part."""

    def __init__(self, folder: Path, of: Checkout) -> None:
        self.of = of
        self.folder = folder / of.state

    def log(self, part: str) -> Path:
        return self._file(part, "log")

    def result(self, part: str) -> Path:
        """Where the part's program writes."""
        return self._file(part, "result")

    def load(self, part: str) -> Outcome | None:
        file = self._file(part, "json")
        if not file.exists():
            return None
        return from_dict(json.loads(file.read_text()))

    def latest(self, part: str) -> Outcome | None:
        """The last outcome of any state of the project. What an earlier form of this program kept is passed over."""
        found = []
        for file in self.folder.parent.glob(f"*/{self._file(part, 'json').name}"):
            with suppress(TypeError):
                found.append(from_dict(json.loads(file.read_text())))
        return max(found, key=lambda outcome: outcome.began, default=None)

    def save(self, outcome: Outcome) -> None:
        self._file(outcome.part, "json").write_text(json.dumps(asdict(outcome), indent=1))

    def _file(self, part: str, ending: str) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / f"{part.replace('/', '-')}.{ending}"


def from_dict(written: dict[str, object]) -> Outcome:
    """:raises TypeError: it was not written by `Kept.save`."""
    counts = written.pop("counts")
    assert isinstance(counts, dict)
    return Outcome(**written, counts=Counts(**counts))  # type: ignore[arg-type]
