"""The options by which the API validates tokens: those of keystonemiddleware.

Only what validates tokens loads it: it takes as long as a third of all else that a compute loads.
"""

from __future__ import annotations

from oslo_config import cfg

GROUP = "keystone_authtoken"


def options() -> list[tuple[str, list[cfg.Opt]]]:
    """(group, options)."""
    from keystonemiddleware import opts

    return [(str(group), listed) for group, listed in opts.list_auth_token_opts()]


__all__ = ["GROUP", "options"]
