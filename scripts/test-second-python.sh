#!/bin/bash
# test-second-python.sh [OPTIONS OF PYTEST ...]: the unit tests on another version of Python than that of .venv, in .venv-second.
# SECOND_PYTHON names its interpreter; else scripts/find-second-python.sh looks for one. Exit status 77, and the reason as last line,
# if there is none.
set -uo pipefail
cd "$(dirname "$0")/.."

if ! python=$(scripts/find-second-python.sh .venv/bin/python); then
    echo "there is no other Python here that pyproject.toml names than $(.venv/bin/python --version); SECOND_PYTHON=/path/to/python3 says which"
    exit 77
fi
echo "second Python: $python, $("$python" --version)"
# An environment of another interpreter is made anew.
if [ -e .venv-second ] && [ "$(.venv-second/bin/python --version 2>&1)" != "$("$python" --version)" ]; then
    rm -rf .venv-second
fi
PYTHON="$python" CAUSEWAY_VENV=.venv-second scripts/install-venv.sh || exit 1
exec .venv-second/bin/python -m pytest -p no:cacheprovider -q -n "${WORKERS:-3}" --dist loadfile --no-loadscope-reorder "$@" tests/unit
