#!/bin/bash
# find-second-python.sh PYTHON: prints $SECOND_PYTHON, or the newest Python of those that pyproject.toml says are supported which is of
# another minor version than PYTHON, in PATH or among what pyenv has installed. Exit status 1 if there is none.
set -uo pipefail
cd "$(dirname "$0")/.."

minor_of() {
    "$1" -c 'import sys, venv; print("3.%d" % sys.version_info[1])' 2>/dev/null
}

first=$(minor_of "$1") || exit 1
if [ -n "${SECOND_PYTHON:-}" ]; then
    minor_of "$SECOND_PYTHON" >/dev/null && echo "$SECOND_PYTHON"
    exit
fi
for version in $(sed -nE 's/.*"Programming Language :: Python :: (3\.[0-9]+)".*/\1/p' pyproject.toml | sort -rV); do
    [ "$version" = "$first" ] && continue
    # pyenv's shims are in PATH, and fail for versions that are not chosen.
    for python in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python; do
        if [ "$(minor_of "$python")" = "$version" ]; then
            echo "$python"
            exit 0
        fi
    done
done
exit 1
