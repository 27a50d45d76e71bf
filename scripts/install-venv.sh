#!/bin/bash
# Makes .venv with the project (editable) and all it needs, at the versions of constraints.txt. Quick when it is up to date.
# PYTHON names the interpreter to make it with, CAUSEWAY_VENV another folder than .venv. install-venv.sh EXTRA adds one more of the
# extras (docs), beside what is there.
set -euo pipefail
cd "$(dirname "$0")/.."

venv="${CAUSEWAY_VENV:-.venv}"

extras=client,test,postgresql,mysql
without_libvirt=""
if pkg-config --exists libvirt 2>/dev/null && command -v gcc >/dev/null; then
    extras="$extras,libvirt"
else
    without_libvirt="install: libvirt-dev, gcc or pkg-config is missing, so there is no libvirt driver: the simulated one serves."
fi

# An extra beside has a mark of its own: whoever has it need not install the rest again, and nobody else installs it.
beside="${1:-}"
[ -z "$beside" ] || extras="$extras,$beside"

wanted="$extras $(pwd) $(cat pyproject.toml constraints.txt | sha256sum)"
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
    local line seen=0 total
    total=$(wc -l <constraints.txt)
    while IFS= read -r line; do
        case $line in
        Collecting* | "Requirement already satisfied"*)
            seen=$((seen + 1))
            if [ -t 1 ]; then
                printf '\rinstall: %d of about %d packages found ' "$seen" "$total"
            elif [ $((seen % 25)) = 0 ]; then
                printf 'install: %d of about %d packages found\n' "$seen" "$total"
            fi
            ;;
        "Building wheel"* | "Installing collected"*)
            [ -t 1 ] && printf '\r'
            printf 'install: %-60.60s\n' "$line"
            ;;
        esac
    done
}

echo "install: Python packages into $venv (a minute or two the first time; details in $venv/install.log)"
started=$SECONDS
if ! "$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off \
    --constraint constraints.txt --editable ".[$extras]" 2>&1 | tee "$venv/install.log" | count_packages; then
    tail -n 30 "$venv/install.log" >&2
    echo "install: pip failed; what it said is in $venv/install.log" >&2
    exit 1
fi
printf '%s' "$wanted" >"$stamp"
echo "install: done in $((SECONDS - started)) s"
