"""[vnc], [serial_console], [consoleauth], [console]: consoles of servers."""

from __future__ import annotations

from ipaddress import ip_network

from oslo_config import cfg, types
from oslo_config.cfg import Opt

OPTS: dict[str, list[Opt]] = {
    "vnc": [
        cfg.BoolOpt("enabled", default=True, help="Guests have a screen, which users see by VNC. Computes read it."),
        cfg.StrOpt(
            "server_listen",
            default="127.0.0.1",
            help="Address at which the screens of a host's guests listen. It asks for no password, so only proxies of consoles"
            " should reach it.",
        ),
        cfg.StrOpt(
            "server_proxyclient_address",
            default="127.0.0.1",
            help="Address by which proxies of consoles reach those screens: the host's address in their network.",
        ),
        cfg.URIOpt(
            "novncproxy_base_url",
            default="http://127.0.0.1:6080/vnc_auto.html",
            schemes=["http", "https"],
            help="The beginning of URLs of VNC consoles: a page of `causeway console-proxy`, as browsers reach it. Computes"
            " read it.",
        ),
    ],
    "serial_console": [
        cfg.BoolOpt(
            "enabled",
            default=False,
            help="Guests have a serial console that users can write to. Computes read it; a guest has it from its next boot"
            " on.",
        ),
        cfg.URIOpt(
            "base_url",
            default="ws://127.0.0.1:6083/",
            schemes=["ws", "wss"],
            help="The beginning of URLs of serial consoles: `causeway console-proxy`, as clients reach it. Computes read it.",
        ),
        cfg.StrOpt(
            "proxyclient_address",
            default="127.0.0.1",
            help="Address at which the serial consoles of a host's guests listen, and by which proxies reach them.",
        ),
        cfg.StrOpt(
            "port_range",
            default="10000:20000",
            regex=r"^\d{1,5}:\d{1,5}$",
            help="TCP ports, first and last, of the serial consoles of a host's guests.",
        ),
    ],
    "consoleauth": [
        cfg.IntOpt("token_ttl", default=600, min=0, help="Seconds for which the URL of a console is valid."),
        cfg.BoolOpt(
            "enforce_session_timeout",
            default=False,
            help="Close consoles when their token expires. If false, they stay open.",
        ),
    ],
    "console": [
        cfg.ListOpt(
            "allowed_origins",
            default=[],
            help="Hosts whose pages may open consoles, besides the proxy's own: those that embed consoles in their pages.",
        ),
        cfg.ListOpt(
            "frame_ancestors",
            item_type=types.String(regex=r"^https?://[^\s;,'/]+$"),
            default=[],
            help="Ours: sites, such as https://horizon.example.org, whose pages may show consoles in a frame, besides the"
            " proxy's own pages. Browsers refuse all others.",
        ),
        cfg.ListOpt(
            "host_networks",
            item_type=ip_network,
            default=[],
            help="Ours: networks, such as 10.1.0.0/16, in which consoles of guests listen. Conductors refuse addresses outside of"
            " them, and names. Hosts say where consoles listen, and proxies connect to it: without this, a compromised host can"
            " send the proxies to whatever they reach. Empty: anywhere.",
        ),
        cfg.StrOpt(
            "novnc_path",
            default="/usr/share/novnc",
            help="Ours: where noVNC is, whose pages the proxy serves (Debian's package novnc).",
        ),
        cfg.IntOpt(
            "max_connections", default=400, min=1, help="Ours: connections that one proxy has at a time; others wait."
        ),
        cfg.FloatOpt(
            "connect_timeout", default=10.0, min=0.1, help="Ours: seconds in which the console of a guest must answer."
        ),
        cfg.FloatOpt(
            "check_interval",
            default=3.0,
            min=0.1,
            help="Ours: seconds between two checks whether the servers of open consoles are still where they were.",
        ),
    ],
}
