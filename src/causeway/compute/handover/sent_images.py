"""Images that carry what a move sends from one host to another, through the image service.

The target believes nothing that has no digest of the source. An image that has its data already was filled by an earlier
attempt, whose answer was lost, or by somebody else: the source compares it with its own file before it says the digest.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from causeway import errors
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.model.image import ImageMeta
from causeway.model.outcomes import Snapshot

_BLOCK = 1 << 20


def digest_of_present(
    host: Host, context: RequestContext, image_id: str, path: Path, refusal: errors.ServiceRefused
) -> str:
    """Returns the SHA-256 of a file that is the content of an image already.

    Raises ``refusal`` if the image takes data all the same, and DiskTransferBroken if its content is another, or not whole.
    """
    image = host.images.show_of_server(context, image_id)
    if image.status == "queued":
        raise refusal
    ours = hashlib.sha256()
    algorithm = image.os_hash_algo or ""
    theirs = hashlib.new(algorithm) if algorithm in hashlib.algorithms_guaranteed else None
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            ours.update(block)
            if theirs is not None:
                theirs.update(block)
    if image.status != "active" or theirs is None or theirs.hexdigest() != image.os_hash_value:
        raise errors.DiskTransferBroken(
            "The image that should carry a disk of the server is not whole, or has another content.",
            details=f"image {image_id} is {image.status}: {refusal.details}",
        )
    return ours.hexdigest()


def expected(sent: Snapshot) -> ImageMeta:
    """What must come. Raises DiskTransferFailed if the source has not said its digest and its size."""
    if sent.sha256 is None:
        raise errors.DiskTransferFailed(
            "A disk of the server has no digest of its source, so it is not used. Ask your cloud's administrator.",
            details=f"image {sent.image_id}: the source's compute service must be upgraded",
        )
    if sent.size < 1:
        raise errors.DiskTransferFailed(
            "A disk of the server has no size of its source, so it is not used. Ask your cloud's administrator.",
            details=f"image {sent.image_id}: {sent.size} bytes",
        )
    return ImageMeta(sent.image_id, size=sent.size, os_hash_algo="sha256", os_hash_value=sent.sha256)
