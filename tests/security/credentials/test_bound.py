"""How long a token that was revoked is let through: an option says so, and by default it is a minute.

That it is no longer than the option says is shown in `tests.functional.api.protocol.test_with_identity`.
"""

from __future__ import annotations

import io
from typing import Any

import pytest
from oslo_config import cfg

from causeway.api import auth
from causeway.conf import library_defaults, new_config, sample


def an_application(_environ: Any, _start: Any) -> list[bytes]:
    return []


def seconds_of(conf: cfg.ConfigOpts) -> int:
    """For how long the API of this configuration takes a token without looking it up."""
    auth.keystone(an_application, conf)
    found: int = conf.keystone_authtoken.token_cache_time
    return found


def test_a_token_is_looked_up_every_minute() -> None:
    assert seconds_of(new_config(None)) == library_defaults.TOKEN_CACHE_TIME == 60


def test_the_example_configuration_says_so() -> None:
    text = io.StringIO()
    sample.write(text)
    assert text.getvalue().count("\n#token_cache_time = 60\n") == 1


@pytest.mark.parametrize("seconds", [-1, 5, 300])
def test_an_operator_may_wish_it_otherwise(tmp_path: Any, seconds: int) -> None:
    file = tmp_path / "causeway.conf"
    file.write_text(f"[keystone_authtoken]\ntoken_cache_time = {seconds}\n")
    assert seconds_of(new_config(None, [file])) == seconds
