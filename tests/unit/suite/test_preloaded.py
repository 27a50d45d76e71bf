"""Commands that share what they import are processes of their own in all else."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.preloaded.commands import Program, ServerDiedError

# What it does is its argument, so that each test can have its own.
SCRIPT = "import sys\nexec(sys.argv[1])\n"
# A test run with one command, which says its own process and the server's, and waits.
RUN = """
import signal, sys
from pathlib import Path
from tests.preloaded.commands import Program
code = "import os, signal; print(os.getpid(), os.getppid(), flush=True); signal.pause()"
command = Program(Path(sys.argv[1]), "calendar").started(code, environment={})
print(command.stdout.readline(), flush=True)
signal.pause()
"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    script = tmp_path / "bin" / "program"
    script.parent.mkdir()
    script.write_text(SCRIPT)
    found = Program(script, "calendar")
    yield found
    found.stop()


def ended(program: Program, code: str, *words: str, **environment: str) -> tuple[int | None, str, str]:
    with program.started(code, *words, environment=environment) as command:
        written, said = command.communicate(timeout=60)
    return command.returncode, written, said


def test_what_a_command_writes_and_its_status_are_its_own(program: Program) -> None:
    code = "print('written'); print('said', file=sys.stderr); sys.exit(int(sys.argv[2]))"
    assert ended(program, code, "0") == (0, "written\n", "said\n")
    assert ended(program, code, "3") == (3, "written\n", "said\n")
    assert ended(program, "sys.exit('refused')") == (1, "", "refused\n")
    assert ended(program, "import os; os.kill(os.getpid(), 9)") == (-signal.SIGKILL, "", "")
    status, _written, said = ended(program, "1 / 0")
    assert status == 1 and said.endswith("ZeroDivisionError: division by zero\n")


def test_nothing_is_left_for_the_next_command(program: Program) -> None:
    code = "import os, calendar; print(os.environ, os.getcwd(), calendar.__dict__.get('left')); calendar.left = os.getpid()"
    for value in ("first", "second"):
        _status, written, _said = ended(program, code, GIVEN=value)
        assert written == f"environ({{'GIVEN': '{value}'}}) {Path.cwd()} None\n"


def test_modules_are_there_before_the_command_starts(program: Program) -> None:
    assert ended(program, "print('calendar' in sys.modules, 'pytest' in sys.modules)")[1] == "True False\n"


def test_a_command_has_its_files_and_no_others(program: Program) -> None:
    code = (
        "import os; print(*(name for name in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{name}')))"
    )
    with program.started("import signal; signal.pause()", environment={}):
        names = ended(program, code)[1].split()
    assert names == ["0", "1", "2"]


def test_a_command_that_takes_too_long_is_killed(program: Program) -> None:
    code = "import os, signal; print(os.getpid(), flush=True); signal.pause()"
    with program.started(code, environment={}) as command:
        process = int(command.stdout.readline())
        handle = os.pidfd_open(process)
        with pytest.raises(subprocess.TimeoutExpired):
            command.communicate(timeout=0.01)
    program.stop()
    # The server has waited for it: there is no such process.
    with pytest.raises(ProcessLookupError):
        signal.pidfd_send_signal(handle, 0)
    os.close(handle)


def test_commands_run_at_the_same_time(program: Program) -> None:
    with program.started("import signal; print('here', flush=True); signal.pause()", environment={}) as waiting:
        assert waiting.stdout.readline() == "here\n"
        assert ended(program, "print('there')") == (0, "there\n", "")


def test_a_server_that_dies_is_reported(program: Program, tmp_path: Path) -> None:
    with pytest.raises(ServerDiedError, match="status -9"):
        ended(program, "import os, signal; os.kill(os.getppid(), signal.SIGKILL)")
    with pytest.raises(ServerDiedError, match="status -9"):
        ended(program, "print()")
    broken = Program(tmp_path / "bin" / "program", "no_such_module")
    with pytest.raises(ServerDiedError, match="No module named 'no_such_module'"):
        ended(broken, "print()")
    broken.stop()


@pytest.mark.usefixtures("program")
def test_nothing_survives_a_test_run_that_dies(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    run = [sys.executable, "-c", RUN, str(tmp_path / "bin" / "program")]
    with subprocess.Popen(run, cwd=root, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            handles = [os.pidfd_open(int(each)) for each in process.stdout.readline().split()]
        finally:
            process.kill()
    assert len(handles) == 2
    for handle in handles:
        ready, _, _ = select.select([handle], [], [], 60)
        assert ready == [handle]
        os.close(handle)
