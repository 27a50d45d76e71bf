"""Defaults of libraries' options that are others here."""

from __future__ import annotations

from oslo_config import cfg

# Seconds for which a token is not looked up again: so long the API may still take one that was revoked.
# keystonemiddleware's own default is 300.
TOKEN_CACHE_TIME = 60
_THEIRS = 300

# Before each line of a traceback, the level of its record. oslo.log's own default says ERROR at every level.
TRACEBACK_PREFIX = "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s %(instance)s"
_THEIR_PREFIX = "%(asctime)s.%(msecs)03d %(process)d ERROR %(name)s %(instance)s"


def set_defaults(conf: cfg.ConfigOpts) -> None:
    """For the options of keystonemiddleware, once they are registered. What an operator has set stays."""
    conf.set_default("token_cache_time", TOKEN_CACHE_TIME, group="keystone_authtoken")


def set_log_defaults(conf: cfg.ConfigOpts) -> None:
    """For the options of oslo.log, once they are registered. What an operator has set stays."""
    conf.set_default("logging_exception_prefix", TRACEBACK_PREFIX)


def in_sample(text: str) -> str:
    """The example configuration with these defaults in place of the libraries'."""
    for option, theirs, ours in (
        ("token_cache_time", _THEIRS, TOKEN_CACHE_TIME),
        ("logging_exception_prefix", _THEIR_PREFIX, TRACEBACK_PREFIX),
    ):
        text = text.replace(f"\n#{option} = {theirs}\n", f"\n#{option} = {ours}\n")
    return text
