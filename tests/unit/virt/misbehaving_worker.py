"""A worker of RBD that does what a call's disk is named after. It appends what it is asked to the file that is its ceph.conf.

``hang``, ``die``, ``garbage``, ``refuse-ERRNO``; ``NAME.once``: only while its ceph.conf does not have ``NAME.once`` twice. Other
disks are described. The account says how it starts: ``silent``, ``crash``, ``refuse-ERRNO``; others: it is ready.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

ACCESS = json.loads(sys.argv[1])
ASKED = Path(ACCESS["conf"])
IMAGE = {"id": "1", "size": 512, "metadata": {}, "snapshots": [], "kept": 0, "watchers": [], "parent": None}


def say(answer: Any) -> None:
    print(json.dumps(answer), flush=True)


def hang() -> NoReturn:
    threading.Event().wait()
    raise AssertionError


def behave(how: str) -> bool:
    """Whether there is nothing more to say."""
    if how in ("hang", "silent"):
        hang()
    if how in ("die", "crash"):
        print("the last words of a worker", file=sys.stderr, flush=True)
        sys.exit(3)
    if how == "garbage":
        print("{]", flush=True)
        return True
    if how.startswith("refuse-"):
        say({"failed": {"number": int(how.removeprefix("refuse-")), "text": "refused at 192.0.2.1"}})
        return True
    return False


if behave(ACCESS["user"]):
    hang()
say({"done": {"fsid": "the-cluster", "by": "bindings"}})
for line in sys.stdin:
    call = json.loads(line)
    name = call.get("name", "")
    with ASKED.open("a") as file:
        file.write(f"{call['type']} {name}\n")
    is_repeated = ASKED.read_text().split().count(name) > 1
    if not (behave(name.removesuffix(".once")) if not (name.endswith(".once") and is_repeated) else False):
        say({"done": IMAGE if call["type"] == "Describe" else [] if call["type"] == "Names" else None})
