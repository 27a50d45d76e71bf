"""Pages of consoles may be framed by the proxy's own pages, and by the sites that the operator lists."""

from __future__ import annotations

import pytest
from oslo_config import cfg

from causeway.conf import new_config
from causeway.console_proxy import pages


def test_by_default_only_its_own_pages_frame_them() -> None:
    assert pages.frame_headers(new_config()) == {
        "Content-Security-Policy": "frame-ancestors 'self'",
        "X-Frame-Options": "SAMEORIGIN",
    }


def test_listed_sites_frame_them_too() -> None:
    conf = new_config(console={"frame_ancestors": ["https://horizon.example.org", "https://*.example.net:8443"]})
    assert pages.frame_headers(conf) == {
        "Content-Security-Policy": "frame-ancestors 'self' https://horizon.example.org https://*.example.net:8443"
    }


@pytest.mark.parametrize("site", ["*", "horizon.example.org", "https://a b", "https://a;script-src *", "'none'"])
def test_what_is_no_site_is_refused(site: str) -> None:
    with pytest.raises((cfg.ConfigFileValueError, ValueError)):
        new_config(console={"frame_ancestors": [site]})
