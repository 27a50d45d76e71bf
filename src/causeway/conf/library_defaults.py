"""Defaults of libraries' options that are others here."""

from __future__ import annotations

from oslo_config import cfg

# Seconds for which a token is not looked up again: so long the API may still take one that was revoked.
# keystonemiddleware's own default is 300.
TOKEN_CACHE_TIME = 60
_THEIRS = 300


def set_defaults(conf: cfg.ConfigOpts) -> None:
    """For the options of keystonemiddleware, once they are registered. What an operator has set stays."""
    conf.set_default("token_cache_time", TOKEN_CACHE_TIME, group="keystone_authtoken")


def in_sample(text: str) -> str:
    """The example configuration with these defaults in place of the libraries'."""
    return text.replace(f"\n#token_cache_time = {_THEIRS}\n", f"\n#token_cache_time = {TOKEN_CACHE_TIME}\n")
