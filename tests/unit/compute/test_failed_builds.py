"""What a host counts of builds, and whether it can write its disks."""

from __future__ import annotations

from pathlib import Path

import pytest

from causeway import errors
from causeway.compute.host.failed_builds import KEPT_FOR, FailedBuilds
from causeway.compute.host.own_folders import why_unwritable


def build(builds: FailedBuilds, failure: Exception | None = None) -> None:
    with builds.counted():
        if failure is not None:
            raise failure


def fail(builds: FailedBuilds, failure: Exception) -> None:
    with pytest.raises(type(failure)):
        build(builds, failure)


def test_builds_that_fail_are_counted_until_one_succeeds_or_none_was_tried_for_long() -> None:
    now = [0.0]
    builds = FailedBuilds(lambda: now[0])
    for failure in (errors.GuestFailed("no"), OSError("no"), errors.ServiceFailed("no")):
        fail(builds, failure)
    assert builds.count == 3
    build(builds)
    assert builds.count == 0
    fail(builds, OSError("no"))
    now[0] += KEPT_FOR - 1
    assert builds.count == 1
    now[0] += 1
    assert builds.count == 0
    fail(builds, OSError("no"))
    assert builds.count == 1


@pytest.mark.parametrize(
    "failure",
    [errors.ClaimRefused("full"), errors.ImageRefused("no"), errors.RequestRefused("no"), errors.TakenOver("late")],
)
def test_a_host_is_not_to_blame_for_what_is_not_its_own(failure: Exception) -> None:
    builds = FailedBuilds()
    fail(builds, failure)
    assert builds.count == 0


def test_a_host_says_which_of_its_folders_it_can_not_write(tmp_path: Path) -> None:
    assert why_unwritable([tmp_path]) is None
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    assert why_unwritable([tmp_path, tmp_path / "file"]) == f"{tmp_path / 'file'} can't be written: Not a directory"
    missing = why_unwritable([tmp_path / "missing"])
    assert missing is not None and "No such file or directory" in missing


def test_a_full_disk_can_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None: ...

        def write(self, _data: bytes) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: Full())
    assert why_unwritable([tmp_path]) == f"{tmp_path} can't be written: No space left on device"
