"""[quota]: how much a project may have by default."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt


def _limit(name: str, default: int, what: str) -> Opt:
    return cfg.IntOpt(name, default=default, min=-1, help=f"{what}; -1: no limit.")


OPTS: dict[str, list[Opt]] = {
    "quota": [
        _limit("instances", 10, "Servers of a project"),
        _limit("cores", 20, "vCPUs of a project"),
        _limit("ram", 50 * 1024, "MiB of memory of a project"),
        _limit("metadata_items", 128, "Metadata items of a server"),
        _limit("injected_files", 5, "Personality files of a server"),
        _limit("injected_file_content_bytes", 10 * 1024, "Bytes of a personality file"),
        _limit("injected_file_path_length", 255, "Length of a personality file's path"),
        _limit("key_pairs", 100, "Key pairs of a user"),
        _limit("server_groups", 10, "Server groups of a project"),
        _limit("server_group_members", 10, "Servers of a server group"),
    ]
}
