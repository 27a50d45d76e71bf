"""The temporary images of a move whose source is dead: only a complete one may be the only copy of a disk."""

from __future__ import annotations

import uuid as uuids
from types import SimpleNamespace
from typing import Any

import pytest

from causeway import errors
from causeway.moves.steps import images


class Images:
    def __init__(self, status: str | None) -> None:
        self._status = status
        self.deleted: list[str] = []

    def show_of_server(self, _context: Any, image_id: str, **_called_as: Any) -> Any:
        if self._status is None:
            raise errors.ImageNotFound(image_id)
        return SimpleNamespace(status=self._status)

    def delete(self, _context: Any, image_id: str, **_called_as: Any) -> None:
        self.deleted.append(image_id)


@pytest.mark.parametrize(
    ("status", "goes"), [("queued", True), ("saving", True), ("active", False), ("deactivated", False), (None, False)]
)
def test_an_image_that_is_no_copy_goes(status: str | None, goes: bool) -> None:
    known = Images(status)
    run: Any = SimpleNamespace(
        context=None,
        services=SimpleNamespace(images=known),
        move=SimpleNamespace(id=str(uuids.uuid4())),
        memory=SimpleNamespace(
            is_cross_cell=True, keeps_memory=False, carries_firmware=False, image_round=0, local_devices=[]
        ),
    )
    complete = images.delete_incomplete_images(run)
    assert bool(known.deleted) == goes
    assert bool(complete) == (status is not None and not goes)
