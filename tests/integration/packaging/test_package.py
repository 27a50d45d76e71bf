"""The wheels and the source archives: what is in them, and that a cloud runs from installed wheels."""

from __future__ import annotations

import subprocess
import tarfile
import zipfile
from email.parser import Parser
from importlib import metadata
from pathlib import Path

import pytest

from tests.distributions import PYPROJECTS, ROOT, pinned, project
from tests.integration.packaging.installed import NAMES, PATIENCE, environment_with, run

# What is in the second distribution, by folder.
EMBEDDED = tuple(
    f"causeway/{name}/" for name in ("cli/demo", "cli/embedded", "devcloud", "embedded", "virt/lab", "virt/simulated")
)
# Without these a part does not run that no import would miss.
NEEDED = (
    "causeway/py.typed",
    "causeway/operators_page/static/console.css",
    "causeway/operators_page/templates/page.html.j2",
    "causeway/console_proxy/static/serial.html",
    "causeway/store/migrations/api/env.py",
    "causeway/store/migrations/api/script.py.mako",
    "causeway/store/migrations/cell/env.py",
)
NEEDED_OF_EMBEDDED = ("causeway/virt/lab/guest_init.sh", "causeway/virt/lab/guest_install.sh")

pytestmark = pytest.mark.timeout(PATIENCE)


def sources(distribution: str) -> set[str]:
    """What belongs into a distribution, by its path there."""
    package = ROOT / "src" / "causeway"
    files = [file for file in package.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    names = {str(file.relative_to(ROOT / "src")) for file in files}
    return {name for name in names if name.startswith(EMBEDDED) == (distribution == "causeway-embedded")}


@pytest.mark.parametrize("distribution", PYPROJECTS)
def test_a_wheel_has_its_part_of_the_package_and_nothing_else(distribution: str, built: Path) -> None:
    name = NAMES[distribution]
    with zipfile.ZipFile(built / f"{name}-py3-none-any.whl") as wheel:
        names = set(wheel.namelist())
        fields = Parser().parsestr(wheel.read(f"{name}.dist-info/METADATA").decode())
    assert {each for each in names if not each.startswith(f"{name}.dist-info/")} == sources(distribution)
    assert set(NEEDED if distribution == "causeway" else NEEDED_OF_EMBEDDED) <= names
    assert f"{name}.dist-info/licenses/LICENSE" in names
    assert fields["License-Expression"] == "Apache-2.0"
    assert set(fields.get_all("Provides-Extra") or ()) == set(project(distribution)["optional-dependencies"])


@pytest.mark.parametrize("distribution", PYPROJECTS)
def test_a_source_archive_has_its_part_of_the_package(distribution: str, built: Path) -> None:
    name = NAMES[distribution]
    with tarfile.open(built / f"{name}.tar.gz") as archive:
        names = {each.removeprefix(f"{name}/") for each in archive.getnames()}
    assert {f"src/{each}" for each in sources(distribution)} | {"pyproject.toml", "README.md", "LICENSE"} <= names
    other = next(each for each in PYPROJECTS if each != distribution)
    assert not names & {f"src/{each}" for each in sources(other)}
    assert not [each for each in names if "__pycache__" in each]


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment_with(built, tmp_path_factory.mktemp("installed"), *PYPROJECTS)


def test_without_the_second_wheel_its_commands_say_which_extra_they_need(built: Path, tmp_path: Path) -> None:
    programs = environment_with(built, tmp_path, "causeway")
    assert "Run the compute service of one host" in run(programs / "causeway", "compute", "--help", cwd=tmp_path)
    refused = subprocess.run(
        [programs / "causeway", "up"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
    )
    assert refused.returncode == 1
    assert "`causeway up` needs the extra 'embedded'" in refused.stderr
    assert "pip install 'causeway[embedded]'" in refused.stderr


def test_a_host_runs_from_the_packages_of_its_list(built: Path, tmp_path: Path) -> None:
    """The wheel beside what requirements/libvirt.txt lists, and nothing else: the process begins, and reads its configuration."""
    pytest.importorskip("libvirt")
    programs = environment_with(built, tmp_path, "causeway", listed="libvirt")
    assert "STATE_PATH/hosts/HOST" in run(programs / "causeway", "compute", "--help", cwd=tmp_path)
    run(programs / "python", "-c", "import causeway.virt.libvirt.driver, os_brick.initiator.connector", cwd=tmp_path)
    file = tmp_path / "compute.conf"
    file.write_text("[DEFAULT]\ncompute_driver = libvirt\ntransport_url = rabbit://127.0.0.1:1/\n")
    for command, said in {
        ("compute", "--config-file", str(file)): "Set [placement] auth_type",
        ("conductor",): "pip install 'causeway[postgresql]' or 'causeway[mysql]'",
        ("api",): "pip install 'causeway[api]'",
        ("metadata",): "pip install 'causeway[api]'",
        ("console-proxy",): "pip install 'causeway[console-proxy]'",
        ("devcloud", "--state-dir", str(tmp_path)): "pip install 'causeway[embedded]'",
        ("operation", "list"): "pip install 'causeway[client]'",
    }.items():
        refused = subprocess.run(
            [programs / "causeway", *command], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
        )
        assert refused.returncode == 1, command
        assert said in refused.stderr, refused.stderr


def test_the_programs_are_those_of_the_wheel(installed: Path, tmp_path: Path) -> None:
    where = run(installed / "python", "-c", "import causeway; print(causeway.__file__)", cwd=tmp_path)
    assert where.startswith(str(installed.parent))
    assert "Run a whole cloud in this process" in run(installed / "causeway", "--help", cwd=tmp_path)


def test_a_cloud_runs_from_it(installed: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    command = [str(installed / "causeway"), "up", "--state-dir", str(state), "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as cloud:
        try:
            assert cloud.stdout is not None
            assert cloud.stdout.readline().startswith("ready: ")
            client = (installed / "python", "-W", "ignore", "-m", "openstackclient.shell", "--os-cloud", "causeway")
            clouds = str(state / "clouds.yaml")
            flavors = run(*client, "flavor", "list", "-f", "value", cwd=tmp_path, OS_CLIENT_CONFIG_FILE=clouds)
            server = (
                "server",
                "create",
                "--flavor",
                "any.small",
                "--image",
                "demo",
                "--network",
                "demo-net",
                "--wait",
                "first",
            )
            made = run(*client, *server, "-f", "value", "-c", "status", cwd=tmp_path, OS_CLIENT_CONFIG_FILE=clouds)
        finally:
            cloud.terminate()
    assert "gen1.small" in flavors
    assert made.strip().endswith("ACTIVE")


def test_a_host_takes_no_more_room_than_it_may(built: Path) -> None:
    """Counted on the disk, as scripts/measure_install.py does it in a new environment with everything compiled."""
    pytest.importorskip("libvirt")
    taken = 0
    for name in pinned(ROOT / "requirements/libvirt.txt"):
        files = [Path(str(file.locate())) for file in metadata.files(name) or ()]
        taken += sum(file.lstat().st_blocks * 512 for file in files if file.exists())
    with zipfile.ZipFile(built / f"{NAMES['causeway']}-py3-none-any.whl") as wheel:
        # As it is, compiled, and blocks that are not full.
        taken += 3 * sum(member.file_size for member in wheel.infolist())
    assert 100e6 < taken < 150e6
