"""The paths in the state directory of an embedded cloud, and the files there that users read and edit."""

from __future__ import annotations

import configparser
import io
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from causeway import durable

POLICY = """\
# Policy of this cloud: rules that differ from the defaults. Read again when it changes.
#
# The default of this rule is "!": nobody's servers leave their cell by a resize or a cold migration. Here every member of
# a project may have its own servers moved across cells.
"compute:servers:resize:cross_cell": "rule:project_member_or_admin"
#
# The same of live migrations, which only administrators ask for.
"causeway:servers:migrate_live:cross_cell": "rule:context_is_admin"
#
# The same of shelved servers that come back.
"causeway:servers:unshelve:cross_cell": "rule:project_member_or_admin"
"""
# What release 0.1.0 wrote; a file that says only this was not edited by anybody.
FORMER_POLICIES = (POLICY.replace('"causeway:', '"compute:'),)


@dataclass(frozen=True)
class StateDir:
    """The state directory."""

    path: Path

    @property
    def policy(self) -> Path:
        return self.path / "policy.yaml"

    @property
    def clouds(self) -> Path:
        return self.path / "clouds.yaml"

    @property
    def manage(self) -> Path:
        """The configuration file for `causeway manage --config-file`."""
        return self.path / "manage.conf"

    @property
    def devcloud(self) -> Path:
        return self.path / "devcloud"

    @property
    def lab(self) -> Path:
        return self.path / "lab"

    def database(self, name: str) -> str:
        return f"sqlite:///{self.path / (name + '.sqlite')}"

    def host(self, name: str) -> Path:
        return self.path / "hosts" / name

    def prepare(self) -> None:
        """Makes the directory, readable only by its owner, because it has credentials."""
        durable.make_folder(self.path)
        self.path.chmod(0o700)
        if not self.policy.exists() or self.policy.read_text() in FORMER_POLICIES:
            durable.write(self.policy, POLICY)

    def metadata_secret(self) -> str:
        """The secret that signs requests to the metadata service. It is made when the cloud starts for the first time."""
        path = self.path / "metadata-secret"
        if not path.exists():
            durable.write(path, secrets.token_hex(32) + "\n", mode=0o600)
        return path.read_text().strip()

    def write_manage(self, sections: Mapping[str, Mapping[str, str]]) -> None:
        written = configparser.ConfigParser(interpolation=None)
        written.read_dict(sections)
        text = io.StringIO()
        written.write(text)
        durable.write(self.manage, text.getvalue(), mode=0o600)

    def write_clouds(self, auth_url: str, members: dict[str, tuple[str, str, str]]) -> None:
        """Writes clouds.yaml: cloud -> (user, password, project)."""
        clouds = {
            name: {
                "auth": {
                    "auth_url": auth_url,
                    "username": user,
                    "password": password,
                    "project_name": project,
                    "user_domain_id": "default",
                    "project_domain_id": "default",
                },
                "region_name": "RegionOne",
                "identity_api_version": "3",
                "volume_api_version": "3",
            }
            for name, (user, password, project) in members.items()
        }
        durable.write(self.clouds, yaml.safe_dump({"clouds": clouds}, sort_keys=False), mode=0o600)
