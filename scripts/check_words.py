"""Finds retired words (docs/glossary.md) in names, docstrings, comments and strings of Python files, and in Markdown.

``scripts/retired-words.toml`` has the words, what to say instead, and the exceptions with their reasons. Prints one line per
finding and exits with 1 if there are any.

    scripts/check_words.py              everything the file names
    scripts/check_words.py PATH ...     these files and folders only
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WORDS = Path(__file__).with_name("retired-words.toml")

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_INLINE_CODE = re.compile(r"`[^`\n]*`")
_LINK_TARGET = re.compile(r"\]\([^)\n]*\)")
_NOT_PROSE = frozenset({tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT})


@dataclass(frozen=True)
class Word:
    """A retired word: how to find it, and what to say instead."""

    retired: str
    say: str
    pattern: re.Pattern[str]
    in_names: bool
    in_prose: bool


@dataclass(frozen=True)
class Exceptions:
    """What is not reported: names that are on the wire or on disk, phrases with another meaning, and files."""

    names: frozenset[str]
    phrases: re.Pattern[str] | None
    files: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    text: str
    word: Word

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text!r}: instead of {self.word.retired}, say {self.word.say}"


def load(text: str) -> tuple[list[str], tuple[Word, ...], Exceptions]:
    """Returns what to check, the retired words and the exceptions that the TOML document ``text`` has.

    Raises ValueError if an exception gives no reason.
    """
    table = tomllib.loads(text)
    words = tuple(
        Word(
            entry["retired"],
            entry["say"],
            re.compile(rf"\b(?:{_spaced(entry['pattern'])})\b", re.IGNORECASE),
            entry.get("in", "both") != "prose",
            entry.get("in", "both") != "names",
        )
        for entry in table["word"]
    )
    names: set[str] = set()
    phrases: list[str] = []
    files: list[str] = []
    for exception in table.get("exception", []):
        if not exception.get("reason"):
            raise ValueError(f"an exception without a reason: {exception}")
        names.update(exception.get("names", []))
        phrases.extend(exception.get("phrases", []))
        files.extend(exception.get("files", []))
    pattern = re.compile("|".join(rf"(?:{_spaced(phrase)})" for phrase in phrases), re.IGNORECASE) if phrases else None
    return table["check"], words, Exceptions(frozenset(names), pattern, tuple(files))


def check_python(path: str, text: str, words: Iterable[Word], exceptions: Exceptions) -> Iterator[Finding]:
    """Yields the retired words in the names, comments and strings of a Python file."""
    words = tuple(words)
    comment: list[str] = []
    first_line = 0
    for token in _tokens(text):
        if token.type == tokenize.COMMENT:
            # Lines of one comment are read together: a phrase may be broken between them.
            first_line = first_line if comment else token.start[0]
            comment.append(token.string.lstrip("#:"))
            continue
        if comment and token.type not in _NOT_PROSE:
            yield from _in_prose(path, first_line, "\n".join(comment), words, exceptions)
            comment = []
        if token.type == tokenize.NAME:
            yield from _in_name(path, token.start[0], token.string, words, exceptions)
        elif token.type == tokenize.STRING:
            if re.search(r"\s", token.string):
                yield from _in_prose(path, token.start[0], token.string, words, exceptions)
            else:
                plain = _PLACEHOLDER.sub("", token.string).strip("\"'bfru")
                yield from _in_name(path, token.start[0], plain, words, exceptions)
    if comment:
        yield from _in_prose(path, first_line, "\n".join(comment), words, exceptions)


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    """The tokens of a Python file. A string with placeholders is one token, as before Python 3.12."""
    start, end = (getattr(tokenize, f"FSTRING_{side}", None) for side in ("START", "END"))
    lines = text.splitlines(keepends=True)
    opened: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == start:
            opened.append(token)
        elif token.type == end:
            first = opened.pop()
            if not opened:
                (top, left), (bottom, right) = first.start, token.end
                written = lines[top - 1 : bottom]
                written[-1] = written[-1][:right]
                written[0] = written[0][left:]
                yield tokenize.TokenInfo(tokenize.STRING, "".join(written), first.start, token.end, first.line)
        elif not opened:
            yield token


def check_markdown(path: str, text: str, words: Iterable[Word], exceptions: Exceptions) -> Iterator[Finding]:
    """Yields the retired words in the prose of a Markdown file; code in it is skipped."""
    for pattern in (_FENCE, _INLINE_CODE, _LINK_TARGET):
        text = pattern.sub(_blank, text)
    yield from _in_prose(path, 1, text, tuple(words), exceptions)


def check(root: Path, paths: Iterable[str], words: tuple[Word, ...], exceptions: Exceptions) -> Iterator[Finding]:
    """Yields the findings in files and folders; ``paths`` are relative to ``root``."""
    for path in _files(root, paths):
        name = path.relative_to(root).as_posix()
        if any(fnmatch(name, pattern) for pattern in exceptions.files):
            continue
        look = check_python if path.suffix == ".py" else check_markdown
        yield from look(name, path.read_text(), words, exceptions)


def _files(root: Path, paths: Iterable[str]) -> Iterator[Path]:
    for given in paths:
        path = root / given
        if path.is_dir():
            yield from sorted(found for found in path.rglob("*") if found.suffix in {".py", ".md"})
        else:
            yield path


def _in_name(path: str, line: int, name: str, words: tuple[Word, ...], exceptions: Exceptions) -> Iterator[Finding]:
    if name in exceptions.names:
        return
    parts = re.sub(r"[\W_]+", " ", _HUMP.sub(" ", name)).lower()
    for word in words:
        if word.in_names and word.pattern.search(parts):
            yield Finding(path, line, name, word)


def _in_prose(path: str, line: int, text: str, words: tuple[Word, ...], exceptions: Exceptions) -> Iterator[Finding]:
    if exceptions.phrases:
        text = exceptions.phrases.sub(_blank, text)
    for word in words:
        if not word.in_prose:
            continue
        for match in word.pattern.finditer(text):
            at = line + text.count("\n", 0, match.start())
            yield Finding(path, at, " ".join(match.group().split()), word)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", "_", match.group())


def _spaced(pattern: str) -> str:
    """A space in a pattern stands for any white space, and for the end of a line of a text."""
    return pattern.replace(" ", r"\s+")


def main(arguments: list[str]) -> int:
    paths, words, exceptions = load(WORDS.read_text())
    given = [Path(argument).resolve().relative_to(ROOT).as_posix() for argument in arguments]
    findings: list[Any] = list(check(ROOT, given or paths, words, exceptions))
    for finding in findings:
        print(finding)
    if findings:
        print(f"{len(findings)} retired words: docs/glossary.md, scripts/retired-words.toml")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
