#!/bin/bash
# install-tool.sh NAME PACKAGE...: makes .venv-NAME with these packages from PyPI, at the versions of NAME-constraints.txt: an
# environment of their own. Quick when it is there. Nothing is compiled ahead: most of it is never imported.
set -euo pipefail
cd "$(dirname "$0")/.."

name="$1"
shift
venv=".venv-$name" constraints="scripts/$name-constraints.txt"
wanted="$(pwd) $* $(sha256sum <"$constraints")"
stamp="$venv/.installed"
[ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && exit 0

echo "install: $* into $venv (details in $venv/install.log)"
started=$SECONDS
rm -rf "$venv"
"$(scripts/find-python.sh)" -m venv "$venv"
if ! "$venv/bin/python" -m pip install --disable-pip-version-check --no-compile --progress-bar off \
    --constraint "$constraints" "$@" >"$venv/install.log" 2>&1; then
    tail -n 30 "$venv/install.log" >&2
    echo "install: pip failed; what it said is in $venv/install.log" >&2
    exit 1
fi
printf '%s' "$wanted" >"$stamp"
echo "install: done in $((SECONDS - started)) s"
