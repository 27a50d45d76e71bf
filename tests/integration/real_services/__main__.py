"""``python -m tests.integration.real_services DIRECTORY [HOST...]``: the services by hand, until Enter or SIGTERM."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

from tests.functional.processes.rabbit import rabbit
from tests.integration.database_servers import database_server
from tests.integration.real_services.services import RealServices

signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))
directory = Path(sys.argv[1]).resolve()
directory.mkdir(parents=True)
with database_server("mariadb") as new_database, rabbit(directory / "rabbit") as queue:
    services = RealServices(
        directory,
        new_database=new_database,
        queue=f"{queue}/services",
        compute_url="http://127.0.0.1:8774/v2.1",
        hosts=sys.argv[2:] or ["host1", "host2"],
    )
    try:
        began = time.monotonic()
        services.start()
        services.write_client_files(directory, directory / "policy.yaml")
        print(
            f"ready after {time.monotonic() - began:.0f} s: {services.addresses.auth_url}, RabbitMQ {queue}", flush=True
        )
        input()
    finally:
        services.stop()
