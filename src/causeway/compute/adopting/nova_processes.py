"""Which processes of this host are a nova-compute."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from causeway.model.found_host import NovaProcess

PROGRAM = "nova-compute"
# Words of a command line in which the program is named: behind an interpreter and its options.
_WORDS, _BYTES = 4, 4096
# A nova-compute in a container shares the network with its host; one of another host of this machine (a lab) shares neither.
_SPACES = ("net", "mnt")


def find(proc: Path = Path("/proc")) -> list[NovaProcess]:
    """Those that work on this host: in our network or mount namespace, or in ones that we may not see."""
    own = {space: _space(proc / "self", space) for space in _SPACES}
    found = []
    for folder in sorted((each for each in proc.iterdir() if each.name.isdigit()), key=lambda each: int(each.name)):
        try:
            with (folder / "cmdline").open("rb") as content:
                words = [word.decode(errors="replace") for word in content.read(_BYTES).split(b"\0")]
        except OSError:
            # It ended meanwhile.
            continue
        if _is_nova(words) and any(_space(folder, space) in (own[space], None) for space in _SPACES):
            command = " ".join(word for word in words if word)
            found.append(NovaProcess(int(folder.name), "".join(c if c.isprintable() else "?" for c in command)[:200]))
    return found


def _is_nova(words: list[str]) -> bool:
    """Nobody but the host's administrators starts programs with such words: names of guests are longer words of QEMU's."""
    return any(PurePosixPath(word.partition(":")[0]).name == PROGRAM for word in words[:_WORDS])


def _space(process: Path, space: str) -> str | None:
    """None: it may not be read."""
    try:
        return str((process / "ns" / space).readlink())
    except PermissionError:
        return None
    except OSError:
        return "it ended"
