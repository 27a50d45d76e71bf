"""A process that is asked to end ends, though a thread of it waits for ever."""

from __future__ import annotations

import signal
import subprocess
import sys

PROGRAM = """
import logging, signal, sys, threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from causeway.cli import processes

logging.basicConfig(level=logging.WARNING)
processes.ENDS_WITHIN["scheduler"] = 0.5
processes.configuration = lambda files: processes.new_config(transport_url="rabbit://nobody")
processes.log.setup = lambda conf, project: None

def start(conf, cleanup):
    # At its end Python waits for threads of pools.
    ThreadPoolExecutor(1, thread_name_prefix="waits").submit(threading.Event().wait)

processes.serve("scheduler", [], start)
"""


def test_a_process_whose_work_does_not_end_is_ended_and_says_so() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ready: ")
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Ended after 0.5 s in the middle of its work; threads that still ran: MainThread, waits_0" in said
