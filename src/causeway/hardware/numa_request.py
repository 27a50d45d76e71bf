"""Makes the NUMA topology that flavor and image request.

Extra specs ``hw:numa_*``, ``hw:cpu_*``, ``hw:mem_page_size`` and the image properties ``hw_*`` of the same names. Source:
Compute admin guide, "CPU topologies", "Huge pages". Precedence of flavor and image and the messages are Nova's.
"""

from __future__ import annotations

from oslo_utils import strutils

from causeway import errors
from causeway.hardware import cpus
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.numa import (
    MEMPAGES_ANY,
    MEMPAGES_LARGE,
    MEMPAGES_SMALL,
    InstanceNUMACell,
    InstanceNUMATopology,
)

CPU_POLICIES = ("dedicated", "mixed", "shared")
THREAD_POLICIES = ("prefer", "isolate", "require")
_WORDS = {"small": MEMPAGES_SMALL, "large": MEMPAGES_LARGE, "any": MEMPAGES_ANY}


def numa_topology(flavor: Flavor, image: ImageMeta | None) -> InstanceNUMATopology | None:
    """Returns the requested topology; None if the server requests none. Raises BadRequest for invalid or contradictory values."""
    policy = cpu_policy(flavor, image)
    threads = thread_policy(flavor, image)
    if threads is not None and policy != "dedicated":
        raise errors.BadRequest("Cannot set cpu thread pinning policy in a non dedicated cpu pinning policy")
    pagesize = page_size(flavor, image)
    dedicated = _dedicated_cpus(flavor, policy)
    nodes = _node_count(flavor, image)
    if nodes is None:
        if not dedicated and pagesize is None:
            return None
        nodes = 1
    topology = InstanceNUMATopology()
    for number, (cell_cpus, memory) in enumerate(_cells(flavor, image, nodes)):
        topology.cells.append(
            InstanceNUMACell(
                id=number,
                cpuset=sorted(cell_cpus - dedicated),
                pcpuset=sorted(cell_cpus & dedicated),
                memory=memory,
                pagesize=pagesize,
                cpu_policy=policy,
                cpu_thread_policy=threads,
            )
        )
    return topology


def dedicated_cpus(flavor: Flavor, image: ImageMeta | None) -> int:
    """Returns how many CPUs of the server are pinned, which is its PCPU in Placement."""
    try:
        return len(_dedicated_cpus(flavor, cpu_policy(flavor, image)))
    except errors.BadRequest:
        # The API refuses such flavors. Older servers that have one have no pinned CPUs.
        return 0


def cpu_policy(flavor: Flavor, image: ImageMeta | None) -> str | None:
    of_flavor, of_image = _both(flavor, image, "cpu_policy")
    for where, value in (("flavor extra specs", of_flavor), ("image properties", of_image)):
        if value is not None and value not in CPU_POLICIES:
            raise errors.BadRequest(
                f"CPU policy requested from '{where}' is invalid: '{value}', available {list(CPU_POLICIES)}."
            )
    if of_flavor in ("shared", "mixed") and of_image is not None and of_image != of_flavor:
        raise errors.BadRequest(
            "Image property 'hw_cpu_policy' is not permitted to override CPU pinning policy set against the flavor"
        )
    return of_flavor or of_image


def thread_policy(flavor: Flavor, image: ImageMeta | None) -> str | None:
    of_flavor, of_image = _both(flavor, image, "cpu_thread_policy")
    for where, value in (("flavor extra specs", of_flavor), ("image properties", of_image)):
        if value is not None and value not in THREAD_POLICIES:
            raise errors.BadRequest(
                f"CPU thread policy requested from '{where}' is invalid: '{value}', available {list(THREAD_POLICIES)}."
            )
    if of_flavor not in (None, "prefer") and of_image is not None and of_image != of_flavor:
        raise errors.BadRequest(
            "Image property 'hw_cpu_thread_policy' is not permitted to override CPU thread pinning policy set against "
            "the flavor"
        )
    return of_image if of_flavor == "prefer" and of_image is not None else of_flavor or of_image


def page_size(flavor: Flavor, image: ImageMeta | None) -> int | None:
    """Returns the size in KiB, or a MEMPAGES constant. Images may choose a size only if the flavor says large or any."""
    of_flavor, of_image = _both(flavor, image, "mem_page_size")
    if of_flavor is None:
        if of_image is not None:
            raise errors.BadRequest(f"Page size {of_image} forbidden against '<empty>'")
        return None
    size = _parse_size(of_flavor)
    if of_image is None:
        return size
    if size not in (MEMPAGES_ANY, MEMPAGES_LARGE):
        raise errors.BadRequest(f"Page size {of_image} forbidden against '{of_flavor}'")
    return _parse_size(of_image)


def _parse_size(text: str) -> int:
    if text in _WORDS:
        return _WORDS[text]
    try:
        # A bare number is in KiB.
        size = int(text) if text.isdecimal() else int(strutils.string_to_bytes(text, return_int=True)) // 1024
    except ValueError as wrong:
        raise errors.BadRequest(f"Invalid memory page size '{text}'") from wrong
    if size < 1:
        raise errors.BadRequest(f"Invalid memory page size '{text}'")
    return size


def _dedicated_cpus(flavor: Flavor, policy: str | None) -> set[int]:
    every = set(range(flavor.vcpus))
    mask = flavor.extra_specs.get("hw:cpu_dedicated_mask")
    if mask is not None and policy != "mixed":
        raise errors.BadRequest("The extra spec 'hw:cpu_dedicated_mask' needs 'hw:cpu_policy' to be 'mixed'.")
    if policy == "dedicated":
        return every
    if policy != "mixed":
        return set()
    if mask is None:
        raise errors.BadRequest("Must specify either 'hw:cpu_dedicated_mask' or 'hw:cpu_realtime_mask'.")
    # A mask with only excluded CPUs means all others.
    text = mask if any(not part.strip().startswith("^") for part in mask.split(",")) else f"0-{flavor.vcpus - 1},{mask}"
    dedicated = _cpu_list("hw:cpu_dedicated_mask", text)
    if not dedicated or dedicated >= every or dedicated - every:
        raise errors.BadRequest("'hw:cpu_dedicated_mask' must name some, and not all, of the flavor's CPUs.")
    return dedicated


def _node_count(flavor: Flavor, image: ImageMeta | None) -> int | None:
    value = _only_one(flavor, image, "numa_nodes")
    if value is None:
        return None
    if not value.isdecimal() or int(value) < 1:
        raise errors.BadRequest(f"The property 'numa_nodes' cannot be '{value}'. It must be a number greater than 0")
    return int(value)


def _cells(flavor: Flavor, image: ImageMeta | None, nodes: int) -> list[tuple[set[int], int]]:
    """Returns CPUs and memory (MiB) of each cell: as flavor or image list them, otherwise in equal parts."""
    cpu_lists = [_only_one(flavor, image, f"numa_cpus.{node}") for node in range(nodes)]
    memories = [_only_one(flavor, image, f"numa_mem.{node}") for node in range(nodes)]
    given = [each is not None for each in (*cpu_lists, *memories)]
    if not any(given):
        if flavor.vcpus % nodes or flavor.memory_mb % nodes:
            raise errors.BadRequest(
                "Instance CPUs and/or memory cannot be evenly distributed across instance NUMA nodes. Explicit "
                "assignment of CPUs and memory to nodes is required"
            )
        per_node, memory = flavor.vcpus // nodes, flavor.memory_mb // nodes
        return [(set(range(node * per_node, (node + 1) * per_node)), memory) for node in range(nodes)]
    if not all(given):
        raise errors.BadRequest("CPU and memory allocation must be provided for all NUMA nodes")
    cells = [
        (_cpu_list(f"numa_cpus.{node}", text or ""), _mib(f"numa_mem.{node}", memory or ""))
        for node, (text, memory) in enumerate(zip(cpu_lists, memories, strict=True))
    ]
    _check_cells(flavor, cells)
    return cells


def _check_cells(flavor: Flavor, cells: list[tuple[set[int], int]]) -> None:
    left = set(range(flavor.vcpus))
    for cell_cpus, _memory in cells:
        for cpu in sorted(cell_cpus):
            if cpu >= flavor.vcpus:
                raise errors.BadRequest(f"CPU number {cpu} is larger than max {flavor.vcpus - 1}")
            if cpu not in left:
                raise errors.BadRequest(f"CPU number {cpu} is assigned to two nodes")
            left.remove(cpu)
    if left:
        raise errors.BadRequest(f"CPU number(s) {sorted(left)} are not assigned to any node")
    total = sum(memory for _cpus, memory in cells)
    if total != flavor.memory_mb:
        raise errors.BadRequest(f"{total} MB of memory assigned, but expected {flavor.memory_mb} MB")


def _cpu_list(name: str, text: str) -> set[int]:
    try:
        return cpus.parse(text)
    except ValueError as wrong:
        raise errors.BadRequest(f"Invalid value '{text}' of '{name}': {wrong}.") from wrong


def _mib(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise errors.BadRequest(f"Invalid value '{text}' of '{name}': it must be an amount of memory in MiB.")
    return int(text)


def _only_one(flavor: Flavor, image: ImageMeta | None, name: str) -> str | None:
    of_flavor, of_image = _both(flavor, image, name)
    if of_flavor is not None and of_image is not None:
        raise errors.BadRequest(
            f"Image property 'hw_{name}' is not permitted to override NUMA configuration set against the flavor"
        )
    return of_flavor if of_flavor is not None else of_image


def _both(flavor: Flavor, image: ImageMeta | None, name: str) -> tuple[str | None, str | None]:
    of_image = image.properties.get(f"hw_{name}") if image is not None else None
    return flavor.extra_specs.get(f"hw:{name}"), None if of_image is None else str(of_image)
