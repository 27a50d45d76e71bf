"""The real Barbican beside a Keystone: keys in its database, encrypted by its plugin `simple_crypto`."""

from __future__ import annotations

import base64
import secrets
from typing import Any

import requests

from tests.integration.real_services.configuration import REGION, credentials, render
from tests.integration.real_services.machine import VENV
from tests.integration.real_services.services import RealServices
from tests.ports import free_port

#: of the conductors' account, as docs/deployment.md has it
ROLE = "key_reader"
_DEFAULT = (
    "rule:secret_project_admin or (rule:secret_project_member and rule:secret_owner)"
    " or (rule:secret_project_member and rule:secret_is_not_private) or rule:secret_acl_read"
)
#: the same lines as in docs/deployment.md
POLICY = f"""\
"secret:get": "role:key_reader or role:admin or {_DEFAULT}"
"secret:decrypt": "role:key_reader or {_DEFAULT}"
"""
_PASTE = """\
[composite:main]
use = egg:Paste#urlmap
/: versions
/v1: api
[pipeline:versions]
pipeline = microversion versionapp
[pipeline:api]
pipeline = authtoken context microversion apiapp
[app:apiapp]
paste.app_factory = barbican.api.app:create_main_app
[app:versionapp]
paste.app_factory = barbican.api.app:create_version_app
[filter:context]
paste.filter_factory = barbican.api.middleware.context:ContextMiddleware.factory
[filter:microversion]
paste.filter_factory = barbican.api.middleware.microversion:MicroversionMiddleware.factory
[filter:authtoken]
paste.filter_factory = keystonemiddleware.auth_token:filter_factory
"""
_WSGI = """\
from paste import deploy
application = deploy.loadapp("config:{paste}")
"""


class Barbican:
    """``services``: whose Keystone runs. ``accounts``: of Barbican itself, as Keystone has it."""

    def __init__(self, services: RealServices, account: str = "barbican") -> None:
        self._services = services
        self._account = account
        self.port = free_port()
        self.url = f"http://{services.addresses.host}:{self.port}"

    def start(self) -> None:
        machine, directory = self._services.machine, self._services.directory
        options: dict[str, dict[str, object]] = {
            "DEFAULT": {
                "host_href": self.url,
                "db_auto_create": "false",
                "sql_connection": f"sqlite:///{directory}/barbican.sqlite",
                "transport_url": "fake://",
            },
            "database": {"connection": f"sqlite:///{directory}/barbican.sqlite"},
            "keystone_authtoken": {**credentials(self._services.addresses, self._account)},
            "oslo_policy": {
                "policy_file": directory / "etc/barbican/policy.yaml",
                "enforce_new_defaults": "true",
                "enforce_scope": "true",
            },
            "secretstore": {"enabled_secretstore_plugins": "store_crypto"},
            "crypto": {"enabled_crypto_plugins": "simple_crypto"},
            "simple_crypto_plugin": {"kek": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()},
        }
        file = machine.write("etc/barbican/barbican.conf", render(options))
        machine.write("etc/barbican/policy.yaml", POLICY)
        paste = machine.write("etc/barbican/paste.ini", _PASTE)
        machine.write("etc/barbican/barbican_wsgi.py", _WSGI.format(paste=paste))
        # Barbican looks for its file in the folders of oslo.config, below HOME.
        machine.write(".barbican/barbican.conf", file.read_text())
        machine.run([VENV / "bin/barbican-manage", "db", "upgrade"])
        machine.start(
            "barbican",
            [
                *(VENV / "bin/gunicorn", "--chdir", directory, "--pythonpath", directory / "etc/barbican"),
                *("--worker-class", "gthread", "--workers", "1", "--threads", "8"),
                *("--bind", f"{self._services.addresses.host}:{self.port}", "barbican_wsgi:application"),
            ],
        )
        machine.await_that(self._answers, "barbican")

    def _answers(self) -> bool:
        try:
            return requests.get(self.url, timeout=10).status_code in (200, 300)
        except requests.RequestException:
            return False

    def add_to_catalog(self, identity: Any) -> None:
        found = identity.create_service(name="barbican", type="key-manager")
        for interface in ("public", "internal", "admin"):
            identity.create_endpoint(service_id=found.id, interface=interface, url=self.url, region_id=REGION)
