#!/bin/bash
# Makes .venv-services: the real Keystone, Glance, Neutron, Cinder, Placement and Barbican from PyPI, for the integration tests, at the
# versions of services-constraints.txt. As root also the servers that they need. Quick when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install-packages.sh --services

wanted="$(pwd) $(sha256sum <scripts/services-constraints.txt)"
stamp=.venv-services/.installed
[ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && exit 0

echo "install: the services around us into .venv-services (a minute or two the first time; details in .venv-services/install.log)"
started=$SECONDS
rm -rf .venv-services
"$(scripts/find-python.sh)" -m venv .venv-services
if ! .venv-services/bin/python -m pip install --disable-pip-version-check --progress-bar off \
    --constraint scripts/services-constraints.txt \
    keystone glance neutron cinder openstack-placement barbican pymysql psycopg2-binary gunicorn >.venv-services/install.log 2>&1; then
    tail -n 30 .venv-services/install.log >&2
    echo "install: pip failed; what it said is in .venv-services/install.log" >&2
    exit 1
fi
printf '%s' "$wanted" >"$stamp"
echo "install: done in $((SECONDS - started)) s"
