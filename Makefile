# What a developer and a newcomer call. `make demo` and `make test` do all set-up by themselves.

# PYTHON=/path/to/python3: the interpreter for .venv, if not the one that scripts/find-python.sh finds.
export PYTHON
BIN := .venv/bin
# Five workers for two cores, because many tests wait; three beside real guests. A file's tests stay on one worker, so that what
# they share is made once.
PYTEST_OPTIONS ?= --dist loadfile --no-loadscope-reorder --durations=25

.DEFAULT_GOAL := help
.PHONY: help packages install lint audit format test test-rest coverage integration verify tempest clients demo docs bench bench-downtime bench-drain bench-scale bench-silence faults storm clean

help: ## shows this
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | while IFS="$$(printf '\t')" read -r name what; \
		do printf '  make %-12s %s\n' "$$name" "$$what"; done

packages: ## installs the Debian packages that are missing (as root)
	@scripts/install-packages.sh

install: packages ## makes .venv with everything
	@scripts/install-venv.sh

lint: install ## ruff (with bandit's rules), mypy --strict of code and tests, who may import whom, no retired words (docs/glossary.md), and the length of commits' subjects
	@failed=""; \
	for check in "ruff check ." "ruff format --check ." "mypy" "lint-imports --no-logo" "python scripts/check_words.py" "python scripts/check_commits.py"; do \
		echo "$$check"; $(BIN)/$$check || failed="$$failed [$$check]"; \
	done; \
	[ -z "$$failed" ] || { echo "lint: failed:$$failed"; exit 1; }

audit: install ## asks pip-audit for known vulnerabilities of the packages in constraints.txt; fails (3) where its database can't be had (AUDIT="--vulnerability-service osv")
	@scripts/install-tool.sh audit pip-audit
	@$(BIN)/python scripts/audit_dependencies.py .venv-audit/bin/pip-audit $(AUDIT)

format: install ## lets ruff fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: install ## every statement proved once, in about six minutes on two cores; make test TESTS=tests/unit for all cases of some
	@scripts/run-tests.sh -n 5 $(PYTEST_OPTIONS) $(or $(TESTS),--part quick)

test-rest: install ## what make test leaves: further cases of the same tests, real guests, databases, browsers, packages (some 35 minutes; UNTIL=TIME: begins no test after so many seconds since 1970)
	@scripts/run-tests.sh -v -n 3 $(PYTEST_OPTIONS) --part rest $(if $(UNTIL),--until $(UNTIL)) --ignore=tests/integration/real_services --ignore=tests/integration/operating_system --ignore=tests/integration/adopt

coverage: install ## the lines of src that unit tests and tests of the API run, in threads and processes too; fails below the floor in pyproject.toml (COVERAGE=tests/unit/sagas: of some tests, without a floor)
	@scripts/measure-coverage.sh $(COVERAGE)

integration: install ## beside the real Keystone, Glance, Neutron, Cinder and Placement, which it installs (as root), in two lanes, about two hours on two cores; continues where it stopped (PART=faults for a part; VERIFY=--list shows them; VERIFY=--again)
	@$(BIN)/python -m verify $(VERIFY) integration$(if $(PART),/$(PART))

verify: install ## everything that proves this project, unattended, for a night (as root); continues where it stopped; writes docs/verified.md (VERIFY="--list", VERIFY="test clients")
	@$(BIN)/python -m verify $(VERIFY)

tempest: install ## Tempest, OpenStack's own tests: the API on simulated hosts, then scenarios on real guests, beside the real services (as root; TEMPEST="--on guests", with --network ovn on OVN, TEMPEST="--regex R")
	@scripts/install-services.sh
	@scripts/install-tool.sh tempest tempest
	@$(BIN)/python -W ignore -m tests.integration.tempest $(TEMPEST)

clients: install ## other people's software on a cloud of `causeway up` each: functional tests of openstacksdk, python-openstackclient and python-novaclient, unmodified, Ansible, Heat, Libcloud, Rally, and Horizon in a browser (CLIENTS="--suite nova --regex R"); the tests also beside the real services (CLIENTS="--beside", as root; CLIENTS="--suite ansible --beside")
	@$(if $(findstring --beside,$(CLIENTS)),scripts/install-services.sh)
	@$(BIN)/python -W ignore -m tests.integration.clients $(CLIENTS)

demo: install ## the main job on real guests: a server moves to another cell, and back (DEMO="--keep"); TARGET=integration: beside the real services, with NETWORK=ovn on OVN; STORAGE=ceph: disks in a Ceph that it installs, ceph-per-cell: in one of each cell
ifeq ($(TARGET),integration)
	@scripts/install-services.sh
	@$(BIN)/python -m tests.integration.real_services.demo $(if $(NETWORK),--network $(NETWORK))
else ifneq ($(STORAGE),)
	@scripts/install-ceph.sh
	@$(BIN)/python -W ignore -m tests.integration.real_services.ceph_demo --storage $(STORAGE)
else
	@$(BIN)/python -m causeway.cli.demo $(DEMO)
endif

docs: install ## this documentation as a site, in build/docs; any warning fails (DOCS=--check-external-links: asks for the links that leave the project)
	@scripts/install-venv.sh docs
	@$(BIN)/python -W ignore -m docs.site $(DOCS)

bench: install ## latencies, work, and exact numbers of statements and calls, as tables and as JSON (BENCH="--only counts", "--record" and others)
	$(BIN)/python -m benchmarks $(BENCH)

bench-downtime: install ## how long real guests are off (root, QEMU and libvirt), as a table (DOWNTIME="--gib 8 --json FILE")
	$(BIN)/python -W ignore -m benchmarks.downtime $(DOWNTIME)

bench-silence: install ## how long a guest is silent while it migrates, by network: the lab's, Open vSwitch, iptables_hybrid, OVN; and for how long its hypervisors had it stand still (SILENCE="--network ovn --times 3 --json FILE")
	@scripts/install-services.sh
	$(BIN)/python -W ignore -m benchmarks.silence $(SILENCE)

bench-scale: install ## 10 cells x 1,000 hosts, 100,000 servers, most of them records, on PostgreSQL and RabbitMQ, ten minutes at most (BENCH_SCALE="--cells 2 --hosts 20 --servers 500" and others); decisions only: .venv/bin/python -m benchmarks.decisions; 100 cells: -m benchmarks.cells
	@scripts/install-packages.sh --servers
	$(BIN)/python -W ignore -m benchmarks.scale $(BENCH_SCALE)

bench-drain: install ## drains: 100,000 servers planned, 2,000 drained in simulated time, 200 really (BENCH_DRAIN="--only moves" and others)
	$(BIN)/python -W ignore -m benchmarks.drains $(BENCH_DRAIN)

faults: install ## the whole matrix of faults: every point x error, crash, power cut, hang, and accidents, one after another for hours; prints a table (FAULTS="--action crash --json FILE" and others; make verify VERIFY=faults runs them side by side and continues where it stopped)
	$(BIN)/python -W ignore -m tests.faults.matrix $(FAULTS)

storm: install ## everything that users do, many at once, a crash every few seconds, hosts that die; answers against what is there (STORM="--seconds 600")
	$(BIN)/python -W ignore -m tests.faults.storm $(STORM)

clean: ## takes away what was built and installed here
	rm -rf .venv .venv-ansible .venv-audit .venv-clients .venv-heat .venv-horizon .venv-libcloud .venv-rally .venv-second .venv-services .venv-tempest build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
