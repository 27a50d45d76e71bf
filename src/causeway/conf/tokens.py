"""The options by which the API validates tokens: those of keystonemiddleware.

Only what validates tokens imports it, when it reads them: else it would take a seventh of the time in which a compute loads.
"""

from __future__ import annotations

from oslo_config import cfg

GROUP = "keystone_authtoken"


def options() -> list[tuple[str, list[cfg.Opt]]]:
    """(group, options)."""
    from keystonemiddleware import opts

    return [(str(group), listed) for group, listed in opts.list_auth_token_opts()]


__all__ = ["GROUP", "options"]
