"""What is installed is bounded, exact and checked: pyproject.toml, requirements/ and constraints.txt agree."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.distributions import PYPROJECTS, ROOT, every_requirement, listed, packages_of, pinned, project

FOLDER = ROOT / "requirements"
# scripts/lock_requirements.py, docs/architecture/dependencies.md.
LEFT_OUT = {"eventlet"}
EXTRAS = sorted(project()["optional-dependencies"])


def constraints() -> dict[str, str]:
    lines = [line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines()]
    return {canonicalize_name(name): version for name, version in lines}


def bounded(requirement: Requirement) -> bool:
    return any(each.operator in ("<", "<=", "==", "~=") for each in requirement.specifier)


def test_every_dependency_has_an_upper_bound() -> None:
    """Also those of tests and documents, and of builds."""
    assert [f"{where} {one}" for where, one in every_requirement() if not bounded(one)] == []
    for path in PYPROJECTS.values():
        assert 'requires = ["setuptools>=77,<' in path.read_text()


def test_both_distributions_have_one_version_and_require_each_other_at_it() -> None:
    version = project()["version"]
    assert {project(name)["version"] for name in PYPROJECTS} == {version}
    for name in PYPROJECTS:
        for extra in ("", *project(name)["optional-dependencies"]):
            others = [one for one in listed(name, extra) if one.name in PYPROJECTS and one.name != name]
            assert all(str(one.specifier) == f"=={version}" for one in others)


def test_there_is_a_list_for_each_extra_and_no_other() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {f"{name}.txt" for name in ("base", "build", *EXTRAS)}


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_list_has_what_its_extra_requires_at_a_version_in_its_range(extra: str) -> None:
    """After a change of pyproject.toml: python scripts/lock_requirements.py."""
    found = pinned(FOLDER / f"{extra}.txt")
    assert packages_of(extra) <= found.keys()
    for _where, one in every_requirement():
        version = found.get(canonicalize_name(one.name))
        assert version is None or one.specifier.contains(version, prereleases=True), one


def test_lists_have_the_versions_of_the_constraints_and_leave_out_only_what_is_said() -> None:
    found = {name: version for path in FOLDER.iterdir() for name, version in pinned(path).items()}
    known = constraints()
    assert {name: version for name, version in found.items() if known.get(name) != version} == {}
    assert LEFT_OUT & found.keys() == set()
    assert known.keys() - found.keys() >= LEFT_OUT


def test_a_host_is_spared_what_other_roles_need() -> None:
    spared = {"eventlet", "gunicorn", "jsonschema-rs", "numpy", "openstack-placement", "openstacksdk", "oslo-db"}
    assert not (spared | {"sqlalchemy", "websockify", "zstandard"}) & pinned(FOLDER / "libvirt.txt").keys()
