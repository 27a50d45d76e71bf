"""[adopt]: hosts that are taken over from Nova."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

OPTS: dict[str, list[Opt]] = {
    "adopt": [
        cfg.StrOpt(
            "nova_state_path",
            help="[DEFAULT] state_path of the nova-compute that had this host. A compute with it only looks, and takes no order,"
            " until `causeway adopt host` takes the host. Not set: the host never was Nova's.",
        ),
        cfg.ListOpt(
            "nova_config_dirs",
            default=["/etc/nova"],
            help="The folders of the files with which nova-compute is started: it looks for a compute_id there, too.",
        ),
    ],
}
