"""nova-manage's spelling of commands, for scripts that use it: ``cell_v2 verify_instance`` is ``cell verify-instance``."""

from __future__ import annotations

import click

_GROUPS = {"cell-v2": "cell"}


class NovaNames(click.Group):
    """A group whose commands may also be called as in Nova."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        ours = cmd_name.replace("_", "-")
        return super().get_command(ctx, _GROUPS.get(ours, ours))
