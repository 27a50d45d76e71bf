"""What operators have written into files and nothing reads: misspelt options, rules of policies that are none."""

from __future__ import annotations

import logging

from oslo_config import cfg

from causeway.conf import ignored
from causeway.policy import unknown_rules

LOG = logging.getLogger(__name__)


def without_effect(conf: cfg.ConfigOpts, *, with_policy: bool, with_tokens: bool = True) -> list[str]:
    """What the operator has written for nothing, a sentence each: options, and policy rules if ``with_policy``. Also logs it.

    ``with_tokens``: see `ignored`.
    """
    options = ignored(conf, with_tokens=with_tokens)
    rules = unknown_rules(conf) if with_policy else []
    found = [str(options)] if options else []
    found += [f"Unknown policy rules: {', '.join(rules)}."] if rules else []
    for sentence in found:
        LOG.warning("%s", sentence)
    return found
