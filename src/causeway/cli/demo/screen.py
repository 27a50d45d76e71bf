"""What the demonstration prints, and the count of its checks."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape
from rich.status import Status


@dataclass
class Screen:
    """Everything that is printed goes through this. ``held`` and ``failed`` count the checks."""

    console: Console = field(default_factory=lambda: Console(highlight=False, soft_wrap=True))
    held: int = 0
    failed: list[str] = field(default_factory=list)

    def heading(self, text: str) -> None:
        self.console.print()
        self.console.rule(f"[bold]{escape(text)}", align="left")

    def note(self, text: str) -> None:
        self.console.print(f"  {escape(text)}", style="dim")

    def command(self, words: Sequence[str]) -> None:
        self.console.print(f"[bold cyan]$[/] {escape(shlex.join(words))}")

    def check(self, claim: str, holds: bool, seen: object = "") -> bool:
        """Prints and counts one check; ``seen`` is what was found."""
        if holds:
            self.held += 1
        else:
            self.failed.append(claim)
        mark = "[bold green]✓[/]" if holds else "[bold red]✗[/]"
        what = f" [dim]({escape(str(seen))})[/]" if seen != "" else ""
        self.console.print(f"  {mark} {escape(claim)}{what}")
        return holds

    @contextmanager
    def working(self, text: str) -> Iterator[Status]:
        """Shows a spinner while something takes long, or prints a line if this is no terminal."""
        if not self.console.is_terminal:
            self.note(f"{text} ...")
        with self.console.status(escape(text)) as status:
            yield status
