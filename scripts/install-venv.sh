#!/bin/bash
# Makes .venv with the project (both distributions, editable) and all it needs. Quick when it is up to date.
# On Python 3.11 and x86-64, as on Debian 12, it installs what requirements/ lists, and pip checks the hash of every file. Elsewhere
# pip finds the packages by itself, at the versions of constraints.txt.
# PYTHON names the interpreter to make it with, CAUSEWAY_VENV another folder than .venv. install-venv.sh EXTRA adds one more of the
# extras (docs), beside what is there.
set -euo pipefail
cd "$(dirname "$0")/.."

venv="${CAUSEWAY_VENV:-.venv}"

extras=api,client,console-proxy,mysql,postgresql,test
without_libvirt=""
if pkg-config --exists libvirt 2>/dev/null && command -v gcc >/dev/null; then
    extras="$extras,libvirt"
else
    without_libvirt="install: libvirt-dev, gcc or pkg-config is missing, so there is no libvirt driver: the simulated one serves."
fi

# An extra beside has a mark of its own: whoever has it need not install the rest again, and nobody else installs it.
beside="${1:-}"
[ -z "$beside" ] || extras="$extras,$beside"

wanted="$extras $(pwd) $(cat pyproject.toml distributions/*/pyproject.toml constraints.txt requirements/*.txt | sha256sum)"
stamp="$venv/.installed${beside:+-$beside}"
[ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && exit 0

python=$(scripts/find-python.sh)
[ -z "$without_libvirt" ] || echo "$without_libvirt"

# A virtual environment without its interpreter or pip is of no use, and neither is one that stood in another folder.
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    rm -rf "$venv"
    if ! "$python" -m venv "$venv"; then
        echo "install: '$python' can't make virtual environments. On Debian, run as root: apt-get install python3-venv" >&2
        exit 1
    fi
fi

# Shows how far pip is: a line that counts on a terminal, one line every 25 packages elsewhere.
count_packages() {
    local line seen=0
    while IFS= read -r line; do
        case $line in
        Collecting* | "Requirement already satisfied"*)
            seen=$((seen + 1))
            if [ -t 1 ]; then
                printf '\rinstall: %d packages found ' "$seen"
            elif [ $((seen % 25)) = 0 ]; then
                printf 'install: %d packages found\n' "$seen"
            fi
            ;;
        "Building wheel"* | "Installing collected"*)
            [ -t 1 ] && printf '\r'
            printf 'install: %-60.60s\n' "$line"
            ;;
        esac
    done
}

pip() {
    "$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off "$@"
}

# Every file by its hash, and what has no wheel built with a builder that was checked as well. --no-deps: the lists are complete,
# and pip would look for more without hashes.
install_by_hash() {
    local lists=(-r requirements/embedded.txt) extra
    for extra in ${extras//,/ }; do lists+=(-r "requirements/$extra.txt"); done
    pip --require-hashes --no-deps -r requirements/build.txt &&
        pip --require-hashes --no-deps --no-build-isolation "${lists[@]}" &&
        pip --no-index --no-deps --no-build-isolation --editable . --editable distributions/embedded
}

install_by_version() {
    pip --constraint constraints.txt --editable ".[$extras]" --editable "distributions/embedded[demo]"
}

install=install_by_version
if "$venv/bin/python" -c 'import platform, sys; sys.exit((sys.version_info[:2], platform.machine()) != ((3, 11), "x86_64"))'; then
    install=install_by_hash
fi
echo "install: Python packages into $venv (a minute or two the first time; details in $venv/install.log)"
started=$SECONDS
if ! $install 2>&1 | tee "$venv/install.log" | count_packages; then
    tail -n 30 "$venv/install.log" >&2
    echo "install: pip failed; what it said is in $venv/install.log" >&2
    exit 1
fi
printf '%s' "$wanted" >"$stamp"
echo "install: done in $((SECONDS - started)) s"
