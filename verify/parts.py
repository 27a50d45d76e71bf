"""All parts, in the order in which they are run: what fails most often, and soonest, comes first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from verify import reading
from verify.reading import Reader

PYTHON = ".venv/bin/python"
#: in a command: the file into which its program writes its result
RESULT = "{result}"
# Of pytest: no cache, because parts of several runs share a checkout.
_PYTEST = (PYTHON, "-m", "pytest", "-p", "no:cacheprovider", "-q", f"--junitxml={RESULT}")
_AT_ONCE = ("-n", "3", "--dist", "loadfile", "--no-loadscope-reorder")
_BOTH = ("--databases", "mariadb", "--databases", "postgresql")
_REAL = "tests/integration/real_services"
# It installs what it needs.
_CLIENTS = (PYTHON, "-W", "ignore", "-m", "tests.integration.clients")
_STORM = (PYTHON, "-W", "ignore", "-m", "tests.faults.storm")
_OS = "tests/integration/operating_system"
_ADOPT = "tests/integration/adopt"
# The longest first: files are handed out in this order.
_OS_FILES = ("resizes_across_cells", "daily_life", "resizes_in_a_cell", "evacuation", "first_boot", "live_ways")


@dataclass(frozen=True)
class Part:
    """``about``: what it proves. ``minutes``: how long it takes on two quiet cores, beside the other lanes.

    ``lane``: parts of a group that wait more than they compute run in lanes, at the same time (see `verify.lanes`). ``resumes``:
    the command continues from the result of a run that was broken off.
    """

    group: str
    name: str
    about: str
    command: tuple[str, ...]
    minutes: float
    reader: Reader = reading.nothing
    needs: tuple[str, ...] = ()
    lane: str | None = None
    resumes: bool = False

    @property
    def title(self) -> str:
        return f"{self.group}/{self.name}"

    def command_to(self, result: Path) -> list[str]:
        """The command, with the file for its result."""
        return [word.replace(RESULT, str(result)) for word in self.command]


#: what a part needs -> the command that installs it; as root
SETUP = {
    "servers": ("scripts/install-packages.sh", "--servers"),
    "os": ("scripts/install-packages.sh", "--os"),
    "services": ("scripts/install-services.sh",),
    # Behind "services": it adds to their environment.
    "ceph": ("scripts/install-ceph.sh",),
    "nova": ("scripts/install-nova.sh",),
    "tempest": ("scripts/install-tool.sh", "tempest", "tempest"),
}


def _real(
    name: str, about: str, minutes: float, *tests: str, lane: str, needs: tuple[str, ...] = ("servers", "services")
) -> Part:
    """A part beside the real services."""
    command = (*_PYTEST, *(f"{_REAL}/{test}" for test in tests))
    return Part("integration", name, about, command, minutes, reading.junit, needs, lane)


def _suite(name: str, about: str, minutes: float, only: str) -> Part:
    """``only``: tests whose names have this in them."""
    command = (*_PYTEST, f"{_REAL}/test_suite_beside.py", "-k", only)
    return Part("suite", name, about, command, minutes, reading.junit, ("servers", "services"))


def _faults(name: str, about: str, minutes: float, *actions: str, lane: str) -> Part:
    """A part of the matrix of moves. ``actions``: of `tests.faults.matrix`."""
    return _matrix(name, about, minutes, *(f"--action={action}" for action in actions), lane=lane)


def _operations(name: str, about: str, minutes: float, *actions: str) -> Part:
    """A part of the matrix of all other operations. ``actions``: of `tests.faults.operations.matrix`."""
    options = ("--of", "operations", *(f"--action={action}" for action in actions))
    return _matrix(f"operations-{name}", f"all other operations: {about}", minutes, *options, lane="d")


def _matrix(name: str, about: str, minutes: float, *options: str, lane: str) -> Part:
    command = (PYTHON, "-W", "ignore", "-m", "tests.faults.matrix", *options, "--json", RESULT, "--resume")
    return Part("faults", name, about, command, minutes, reading.matrix, ("servers",), lane, resumes=True)


def _bench(
    name: str, about: str, minutes: float, reader: Reader, module: str, *, needs: tuple[str, ...] = ("servers",)
) -> Part:
    command = (PYTHON, "-W", "ignore", "-m", module, "--json", RESULT)
    return Part("bench", name, about, command, minutes, reader, needs)


def _tool(name: str, about: str, minutes: float) -> Part:
    """Other people's software on `causeway up`."""
    return Part("clients", name, about, (*_CLIENTS, "--suite", name, "--json", RESULT), minutes, reading.suites)


def _tool_beside(name: str, minutes: float) -> Part:
    """The same beside the real services."""
    command = (*_CLIENTS, "--suite", name, "--beside", "--json", RESULT)
    about = f"{name.capitalize()} beside the real services"
    return Part("clients", f"{name}-beside", about, command, minutes, reading.suites, ("servers", "services"))


PARTS: tuple[Part, ...] = (
    Part("lint", "lint", "style, types, who may import whom, retired words, commits' subjects", ("make", "lint"), 2),
    Part("docs", "site", "the documentation builds without a warning, its links lead somewhere", ("make", "docs"), 2),
    Part(
        "test",
        "unit",
        "dense logic, by package",
        (*_PYTEST, *_AT_ONCE, "tests/unit"),
        minutes=3,
        reader=reading.junit,
        needs=("servers",),
    ),
    Part(
        "test",
        "second-python",
        "the unit tests on another version of Python, if this machine has one",
        ("scripts/test-second-python.sh", f"--junitxml={RESULT}"),
        minutes=6,
        reader=reading.junit,
        needs=("servers",),
    ),
    Part(
        "test",
        "functional",
        "behaviour through the REST API, on embedded clouds",
        (*_PYTEST, *_AT_ONCE, "tests/functional"),
        minutes=25,
        reader=reading.junit,
        needs=("servers",),
    ),
    Part(
        "test",
        "security",
        "attacks, by the way in",
        (*_PYTEST, *_AT_ONCE, "tests/security"),
        minutes=3,
        reader=reading.junit,
        needs=("servers",),
    ),
    Part(
        "test",
        "faults",
        "samples of the matrix of faults, and what only single tests prove",
        (*_PYTEST, *_AT_ONCE, "tests/faults"),
        minutes=8,
        reader=reading.junit,
        needs=("servers",),
    ),
    Part(
        "test",
        "coverage",
        "the lines that unit tests and tests of the API run are not fewer than they were",
        ("scripts/measure-coverage.sh", "--json", RESULT),
        minutes=8,
        reader=reading.coverage,
        needs=("servers",),
    ),
    Part(
        "test",
        "guests",
        "real guests, databases, browsers, packages",
        (*_PYTEST, *_AT_ONCE, "tests/integration", f"--ignore={_REAL}", f"--ignore={_OS}", f"--ignore={_ADOPT}"),
        minutes=15,
        reader=reading.junit,
        needs=("servers",),
    ),
    _real(
        "main-job", "moves between cells beside the real services, on both databases", 7, "test_main_job.py", lane="a"
    ),
    _real(
        "services",
        "notifications, metadata, unified limits, Barbican's keys beside the real services",
        5,
        "test_notifications_beside.py",
        "test_metadata_agent.py",
        "test_unified_limits.py",
        "test_barbican.py",
        lane="a",
    ),
    _real(
        "guests",
        "real guests beside the real services: moves, volumes, security groups",
        34,
        "test_real_guests.py",
        "test_guests_kept_running.py",
        "test_security_groups.py",
        lane="b",
    ),
    Part(
        "integration",
        "os",
        "Debian as clouds have it: boots, moves, its agent, its consoles",
        (*_PYTEST, *_AT_ONCE, *(f"{_OS}/test_{name}.py" for name in _OS_FILES)),
        minutes=19,
        reader=reading.junit,
        needs=("os",),
        lane="b",
    ),
    _real(
        "ovn",
        "real guests on OVN: moves, evacuation, security groups, dead controllers, floating IPs, metadata, trunks",
        22,
        "test_ovn.py",
        "test_ovn_networks.py",
        lane="a",
    ),
    _real(
        "agents-and-ovn",
        "real guests go from Open vSwitch's agents to OVN and back, in one Neutron",
        12,
        "test_agents_and_ovn.py",
        lane="b",
    ),
    _real(
        "hybrid", "real guests whose ports have bridges of their own (iptables_hybrid)", 10, "test_hybrid.py", lane="a"
    ),
    _real(
        "ceph",
        "real guests on a real Ceph: their volumes and their disks, which QEMU opens by itself; a pool as a store of disks",
        65,
        "test_ceph_volumes.py",
        "test_ceph_encrypted.py",
        "test_ceph_store.py",
        "test_ceph_base_images.py",
        "test_ceph_fences.py",
        "test_ceph_unreachable.py",
        "test_ceph_rounds.py",
        "test_ceph_disks.py",
        "test_ceph_apart.py",
        "test_ceph_images.py",
        "test_ceph_demo.py",
        lane="b",
        needs=("servers", "services", "ceph"),
    ),
    Part(
        "integration",
        "adopt",
        "a cloud that runs the real Nova, with real guests, is taken over",
        (*_PYTEST, _ADOPT),
        minutes=45,
        reader=reading.junit,
        needs=("servers", "services", "nova"),
        lane="a",
    ),
    _real("upgrade", "an upgrade while servers move", 3, "test_online_upgrade.py", lane="a"),
    _real("faults", "each part around fails in the middle of a move", 17, "test_faults_of_parts.py", lane="a"),
    _real("killed", "each service around is killed in requests", 25, "test_killed_in_requests.py", lane="b"),
    _real("killed-mariadb", "the same, on MariaDB", 12, "test_killed_on_mariadb.py", lane="b"),
    _real("suite-sample", "a sample of the suite by URL beside the real services", 2, "test_suite_sample.py", lane="a"),
    Part(
        "integration",
        "storm",
        "a storm of processes: roles, RabbitMQ, databases, Placement, devcloud, struck one by one",
        (*_STORM, "--processes", "--servers", "12", "--seconds", "75", "--seed", "1", "--json", RESULT),
        minutes=4,
        reader=reading.storm,
        needs=("servers",),
        lane="a",
    ),
    Part(
        "integration",
        "suite",
        "the functional suite by URL on devcloud, all shapes, half of it on each database",
        (PYTHON, "-W", "ignore", "-m", "tests.functional.processes.suite_runs", *_BOTH, "--json", RESULT),
        minutes=20,
        reader=reading.suites,
        needs=("servers",),
    ),
    _suite("api", "the tests of the API on MariaDB and on PostgreSQL", 10, "of_the_api"),
    _suite("mariadb", "the functional suite by URL beside the real services, on MariaDB", 40, "by_url and mariadb"),
    _suite("postgresql", "the same on PostgreSQL", 40, "by_url and postgresql"),
    # Lanes, because most of the time they wait: for leases, and for a cloud that starts again.
    _faults("errors", "moves: every point fails once", 11, "error", lane="a"),
    _faults("crashes", "moves: everything crashes at every point, and starts again", 110, "crash", lane="a"),
    _faults("cancels", "moves: cancelled after a crash at every point", 20, "cancel", lane="a"),
    _faults("power-cuts", "moves: a power cut at every point", 130, "power-cut", lane="b"),
    _faults("hangs", "moves: a conductor hangs at every point, another takes over", 25, "hang", lane="b"),
    _faults(
        "pauses", "moves: one of two conductors stops at every point, and wakes", 40, "pause", "long-pause", lane="c"
    ),
    _faults("late-wakes", "the same, and it wakes when users have requested more", 25, "longest-pause", lane="c"),
    _faults("killed-services", "moves: services around die in the middle of requests", 25, "service-killed", lane="b"),
    _faults("dead-sources", "moves: the source dies before and after every step", 80, "dead-source", lane="c"),
    _faults("dead-targets", "moves: the target dies before and after every step", 40, "dead-target", lane="c"),
    _faults("lost-copies", "moves: what would be kept is gone", 10, "target-lost", "source-lost", lane="c"),
    _operations("errors", "every point fails once", 25, "error"),
    _operations("crashes", "everything crashes at every point, and starts again", 40, "crash"),
    _operations("killed-services", "services around die in the middle of requests", 60, "service-killed"),
    _operations("hangs", "a conductor hangs at every point, another takes over", 50, "hang"),
    _operations("pauses", "one of two conductors stops at every point, and wakes", 60, "pause", "long-pause"),
    Part(
        "storm",
        "storm",
        "everything that users do, many at once, a crash every few seconds",
        (*_STORM, "--seconds", "600", "--json", RESULT),
        minutes=20,
        reader=reading.storm,
        needs=("servers",),
    ),
    Part(
        "tempest",
        "simulated",
        "Tempest on simulated hosts: the Compute API",
        (PYTHON, "-W", "ignore", "-m", "tests.integration.tempest", "--on", "simulated", "--json", RESULT),
        minutes=18,
        reader=reading.suites,
        needs=("servers", "services", "tempest"),
    ),
    Part(
        "tempest",
        "guests",
        "Tempest's scenarios, and what else logs in, on real guests behind routers",
        (PYTHON, "-W", "ignore", "-m", "tests.integration.tempest", "--on", "guests", "--json", RESULT),
        minutes=32,
        reader=reading.suites,
        needs=("servers", "services", "tempest"),
    ),
    Part(
        "tempest",
        "ovn",
        "the same on OVN, behind its routers",
        (
            *(PYTHON, "-W", "ignore", "-m", "tests.integration.tempest"),
            *("--on", "guests", "--network", "ovn", "--json", RESULT),
        ),
        minutes=35,
        reader=reading.suites,
        needs=("servers", "services", "tempest"),
    ),
    Part(
        "clients",
        "up",
        "functional tests of three clients on `causeway up`",
        (*_CLIENTS, "--suite", "openstacksdk", "--suite", "openstack", "--suite", "nova", "--json", RESULT),
        minutes=20,
        reader=reading.suites,
    ),
    _tool("ansible", "Ansible's collection: playbooks that change nothing when they are run again", 5),
    _tool("libcloud", "what Libcloud's driver offers", 2),
    _tool("horizon", "Horizon's pages in a browser, a server's life, consoles", 15),
    _tool("heat", "Heat: a stack is created, resized, deleted", 5),
    _tool("rally", "every Nova scenario of Rally, three times each", 20),
    Part(
        "clients",
        "beside",
        "the same beside the real services",
        (*_CLIENTS, "--beside", "--json", RESULT),
        minutes=30,
        reader=reading.suites,
        needs=("servers", "services"),
    ),
    _tool_beside("ansible", 8),
    _tool_beside("libcloud", 4),
    _bench("calls", "statements, calls and time of each operation", 5, reading.calls, "benchmarks"),
    _bench("downtime", "how long a guest can't be reached", 10, reading.numbers, "benchmarks.downtime"),
    _bench(
        "silence",
        "how long a guest is silent while it migrates, by network",
        20,
        reading.numbers,
        "benchmarks.silence",
        needs=("servers", "services"),
    ),
    _bench("scale", "10 cells with 1,000 hosts, 100,000 servers", 12, reading.numbers, "benchmarks.scale"),
    _bench("drains", "drains, planned, simulated and real", 10, reading.numbers, "benchmarks.drains"),
)
GROUPS = tuple(dict.fromkeys(part.group for part in PARTS))


def chosen(names: tuple[str, ...]) -> list[Part]:
    """Parts by group or by ``group/part``; all of them if no name is given.

    :raises LookupError: no part has such a name.
    """
    for name in names:
        if name not in GROUPS and name not in {part.title for part in PARTS}:
            raise LookupError(name)
    return [part for part in PARTS if not names or part.group in names or part.title in names]
