#!/bin/bash
# Adds Nova from PyPI to .venv-services, at the versions of services-constraints.txt and nova-constraints.txt: for the tests of taking
# over a cloud that runs it. Quick when it is there.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install-services.sh

# In that environment: whoever makes it anew installs Nova anew.
wanted="$(sha256sum <scripts/nova-constraints.txt)"
stamp=.venv-services/.nova-installed
[ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && exit 0

echo "install: Nova into .venv-services (details in .venv-services/install-nova.log)"
started=$SECONDS
if ! .venv-services/bin/python -m pip install --disable-pip-version-check --progress-bar off \
    --constraint scripts/services-constraints.txt --constraint scripts/nova-constraints.txt nova libvirt-python >.venv-services/install-nova.log 2>&1; then
    tail -n 30 .venv-services/install-nova.log >&2
    echo "install: pip failed; what it said is in .venv-services/install-nova.log" >&2
    exit 1
fi
printf '%s' "$wanted" >"$stamp"
echo "install: done in $((SECONDS - started)) s"
