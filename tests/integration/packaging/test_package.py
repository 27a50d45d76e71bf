"""The wheels and the source archives: what is in them, and that a cloud runs from installed wheels."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from email.parser import Parser
from importlib import metadata
from pathlib import Path

import pytest

from tests.distributions import PYPROJECTS, ROOT, pinned, project

VERSION = project()["version"]
# distribution -> the beginning of its archives' names
NAMES = {name: f"{name.replace('-', '_')}-{VERSION}" for name in PYPROJECTS}
# What is in the second distribution, by folder.
EMBEDDED = tuple(
    f"causeway/{name}/" for name in ("cli/demo", "cli/embedded", "devcloud", "embedded", "virt/lab", "virt/simulated")
)
PATIENCE = 300
# Without these a part does not run that no import would miss.
NEEDED = (
    "causeway/py.typed",
    "causeway/console/static/console.css",
    "causeway/console/templates/page.html.j2",
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


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """What a command prints. Fails with all that it said."""
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=os.environ | environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both archives, built of a copy, because a build writes beside the sources."""
    folder = tmp_path_factory.mktemp("package")
    copy = folder / "source"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copytree(ROOT / "distributions", copy / "distributions", symlinks=True)
    shutil.copytree(ROOT / "tests" / "integration" / "packaging", copy / "tests")
    for source in (copy, copy / "distributions/embedded"):
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", source, cwd=folder)
    return folder / "dist"


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


def environment_with(built: Path, folder: Path, *distributions: str, listed: str | None = None) -> Path:
    """The programs of a new environment in which these wheels are installed.

    Their dependencies are all packages of this environment; ``listed``: those that the list of this extra in requirements/ names.
    """
    environment = folder / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=built)
    wheels = [built / f"{NAMES[each]}-py3-none-any.whl" for each in distributions]
    python = environment / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index", "--no-deps", *wheels, cwd=built)
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=built).strip())
    if listed is None:
        # Files with this ending are only read here, not in the folder that is named: the sources are not found through it.
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        return environment / "bin"
    for name in pinned(ROOT / "requirements" / f"{listed}.txt"):
        files = [
            file for file in metadata.files(name) or () if ".." not in file.parts and "__pycache__" not in file.parts
        ]
        for file in files:
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            (site / file).symlink_to(file.locate())
    return environment / "bin"


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
