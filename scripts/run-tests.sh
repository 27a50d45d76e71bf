#!/bin/bash
# Runs pytest with the given arguments. Tests of real guests and of processes that are killed may miss a deadline on a machine
# that stood still for a while: what failed is run a second time, by itself, if it is in five files at most (a cloud that does
# not start fails all tests of its file). What failed for another reason fails again; what passes only now is written into
# docs/flakes.md, because its first failure is still to be explained, and fails if it is too much (scripts/flakes.py).
set -uo pipefail
cd "$(dirname "$0")/.."

# `make test` writes many small files, each of them synced: in memory that takes a quarter less of the processor.
temporary=()
free=$(df --output=avail /dev/shm 2>/dev/null | tail -1)
if [[ " $* " == *" --part quick "* ]] && [ "${free:-0}" -gt $((6 << 20)) ]; then
    folder=$(mktemp -d /dev/shm/causeway-tests-XXXXXX)
    trap 'rm -rf "$folder"' EXIT
    temporary=("--basetemp=$folder/tests")
fi

readonly AT_MOST=5 FAILED=.pytest_cache/v/cache/lastfailed

# Hundreds of processes would each compile all of it anew.
unset PYTHONDONTWRITEBYTECODE
rm -f "$FAILED"
.venv/bin/pytest "${temporary[@]}" "$@"
status=$?
# 1: tests ran, and some failed. Anything else is no failure of single tests.
[ "$status" = 1 ] && [ -f "$FAILED" ] || exit "$status"
failed=$(.venv/bin/python -c 'import json, sys; print(*json.load(open(sys.argv[1])), sep="\n")' "$FAILED")
[ "$(sed "s/::.*//" <<<"$failed" | sort -u | wc -l)" -le "$AT_MOST" ] || exit "$status"

printf '\nFailed, and run once more by themselves:\n%s\n\n' "$failed"
mapfile -t again <<<"$failed"
.venv/bin/pytest -v -n 0 "${again[@]}" || exit 1
printf '\nPassed only when they were run a second time, which is noted in docs/flakes.md; why they failed at first is to be explained:\n%s\n' \
    "$failed"
.venv/bin/python scripts/flakes.py note "${again[@]}"
