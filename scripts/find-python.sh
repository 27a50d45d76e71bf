#!/bin/sh
# Prints the Python that environments are made with: $PYTHON, or else the first of the system's and the one in PATH that is
# 3.11 or newer. The system's: what install-packages.sh installs is for it, and Debian builds it with all optimizations.
set -eu

for python in ${PYTHON:-/usr/bin/python3 python3}; do
    if command -v "$python" >/dev/null && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        echo "$python"
        exit 0
    fi
done
echo "install: '${PYTHON:-python3}' is not Python 3.11 or newer. Install one, or name it: make install PYTHON=/path/to/python3.11" >&2
exit 1
