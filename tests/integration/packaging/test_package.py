"""The wheel and the source archive: what is in them, and that a cloud runs from an installed wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAME = f"causeway-{PROJECT['version']}"
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
    "causeway/virt/lab/guest_init.sh",
)

pytestmark = pytest.mark.timeout(PATIENCE)


def sources() -> set[str]:
    """What belongs into the package, by its path there."""
    package = ROOT / "src" / "causeway"
    files = [file for file in package.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    return {str(file.relative_to(ROOT / "src")) for file in files}


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
    shutil.copytree(ROOT / "tests" / "integration" / "packaging", copy / "tests")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", copy, cwd=folder)
    return folder / "dist"


def test_the_wheel_has_the_package_and_nothing_else(built: Path) -> None:
    with zipfile.ZipFile(built / f"{NAME}-py3-none-any.whl") as wheel:
        names = set(wheel.namelist())
        metadata = Parser().parsestr(wheel.read(f"{NAME}.dist-info/METADATA").decode())
    assert {name for name in names if not name.startswith(f"{NAME}.dist-info/")} == sources()
    assert set(NEEDED) <= names
    assert f"{NAME}.dist-info/licenses/LICENSE" in names
    assert metadata["License-Expression"] == "Apache-2.0"
    extras = set(metadata.get_all("Provides-Extra") or ())
    assert extras == set(PROJECT["optional-dependencies"]) >= {"libvirt", "postgresql", "mysql", "client"}


def test_the_source_archive_has_the_package(built: Path) -> None:
    with tarfile.open(built / f"{NAME}.tar.gz") as archive:
        names = {name.removeprefix(f"{NAME}/") for name in archive.getnames()}
    assert {f"src/{name}" for name in sources()} | {"pyproject.toml", "README.md", "LICENSE"} <= names
    assert not [name for name in names if "__pycache__" in name]


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment: the wheel is installed there, its dependencies are those of this environment."""
    environment = tmp_path_factory.mktemp("installed") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=built)
    (wheel,) = built.glob("*.whl")
    python = environment / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index", "--no-deps", wheel, cwd=built)
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=built).strip())
    # Files with this ending are only read here, not in the folder that is named: the sources are not found through it.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment / "bin"


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
