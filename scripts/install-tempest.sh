#!/bin/bash
# Makes .venv-tempest: Tempest from PyPI at the versions of tempest-constraints.txt, in an environment of its own. Quick when it is there.
set -euo pipefail
cd "$(dirname "$0")/.."

wanted="$(pwd) $(sha256sum <scripts/tempest-constraints.txt)"
stamp=.venv-tempest/.installed
[ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && exit 0

echo "install: Tempest into .venv-tempest (details in .venv-tempest/install.log)"
started=$SECONDS
rm -rf .venv-tempest
"${PYTHON:-python3}" -m venv .venv-tempest
if ! .venv-tempest/bin/python -m pip install --disable-pip-version-check --progress-bar off \
    --constraint scripts/tempest-constraints.txt tempest >.venv-tempest/install.log 2>&1; then
    tail -n 30 .venv-tempest/install.log >&2
    echo "install: pip failed; what it said is in .venv-tempest/install.log" >&2
    exit 1
fi
printf '%s' "$wanted" >"$stamp"
echo "install: done in $((SECONDS - started)) s"
