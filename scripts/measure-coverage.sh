#!/bin/bash
# measure-coverage.sh [--json FILE] [TESTS ...]: which lines of src the tests run, in threads and in processes that they start.
# Without TESTS: the unit tests and those of the API's resources, but for the long ones. Then it fails if fewer lines are run than
# [tool.coverage.report] fail_under in pyproject.toml asks for. It fails if a test fails, too. build/coverage/html/index.html shows
# the lines.
set -uo pipefail
cd "$(dirname "$0")/.."

json=build/coverage/result.json
if [ "${1:-}" = --json ]; then
    json="$2"
    shift 2
fi
floor=()
if [ $# = 0 ]; then
    set -- -m "not long" tests/unit tests/functional/api
else
    floor=(--fail-under=0)
fi

# keep_greenlets, a plugin of coverage.py, is there; processes that tests start need it too.
export PYTHONPATH="$PWD/scripts${PYTHONPATH:+:$PYTHONPATH}"

rm -rf build/coverage
mkdir -p build/coverage
.venv/bin/coverage run -m pytest -q -p no:cacheprovider -n "${WORKERS:-3}" --dist loadfile --no-loadscope-reorder "$@"
tests=$?
.venv/bin/coverage combine --quiet || exit 1
.venv/bin/coverage json --quiet --fail-under=0 -o "$json" || exit 1
.venv/bin/coverage html --quiet --fail-under=0 --directory build/coverage/html || exit 1
.venv/bin/coverage report --format=total "${floor[@]}"
reached=$?
echo "coverage: percent of lines, above. Line by line: build/coverage/html/index.html"
[ "$tests" = 0 ] || echo "coverage: tests failed ($tests)"
[ "$reached" = 0 ] || echo "coverage: fewer lines are run than fail_under in pyproject.toml asks for"
[ "$tests" = 0 ] && [ "$reached" = 0 ]
