"""Writes Nova's schemas, as its migrations make them on each kind of database, and its objects: `tests/unit/adopt/schemas`.

Run as ``python -m tests.integration.databases.nova_schemas``. It takes Nova's releases from PyPI, runs the migrations of the
newest one on a server of each kind, and keeps the statements of those tables that are read, below the revision they belong to.
Nothing of Nova is installed: of its modules the migrations need two constants.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import event

from causeway.adopt.hand_back.nova_objects import OLDEST
from causeway.adopt.nova import tables
from tests.integration.database_servers import database_server

FOLDER = Path(__file__).parents[2] / "unit" / "adopt" / "schemas"
# Xena was the first one with alembic.
RELEASES = range(24, 35)
_KINDS = {"api": "api", "cell": "main"}
_NAMES = frozenset(table.name for table in vars(tables).values() if isinstance(table, sa.TableClause))
_READS = re.compile(r"\s*(SELECT|PRAGMA|SHOW|DESC)", re.IGNORECASE)
_TABLE = re.compile(r"(?: TABLE|INSERT INTO|UPDATE| ON)\s+[`\"]?(?:_alembic_tmp_)?(\w+)", re.IGNORECASE)
_OTHER_TYPE_OR_INDEX = re.compile(r"(CREATE TYPE|\w+ INDEX) \w*(shadow|console)_")


def main() -> None:
    with tempfile.TemporaryDirectory() as given:
        folder = Path(given)
        sources = {release: _source(folder, release) for release in RELEASES}
        newest = sources[max(RELEASES)]
        heads = {release: {kind: _head(source, kind) for kind in _KINDS} for release, source in sources.items()}
        for source in sources.values():
            _require_same_migrations(source, newest)
        (FOLDER / "heads.json").write_text(json.dumps(heads, indent=1) + "\n")
        (FOLDER / "objects.json").write_text(json.dumps(_objects(sources), indent=1) + "\n")
        with _stubs(newest):
            _write_all(newest, "sqlite", lambda kind: f"sqlite:///{folder}/{kind}")
            for server in ("postgresql", "mariadb"):
                with database_server(server) as url_of:
                    _write_all(newest, server, url_of)


def _source(folder: Path, release: int) -> Path:
    there = folder / str(release)
    download = [sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "-d", str(there), f"nova=={release}.*"]
    subprocess.run(download, check=True, timeout=300)
    (wheel,) = there.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(
            there, [name for name in archive.namelist() if name.startswith(("nova/db/", "nova/objects/"))]
        )
    return there


def _scripts(source: Path, kind: str) -> ScriptDirectory:
    return ScriptDirectory(str(source / "nova" / "db" / _KINDS[kind] / "migrations"))


def _head(source: Path, kind: str) -> str:
    """Read from the text, as the older ones can't be imported with today's SQLAlchemy."""
    found, followed = set(), set()
    for path in (source / "nova" / "db" / _KINDS[kind] / "migrations" / "versions").glob("*.py"):
        text = path.read_text()
        found.update(re.findall(r"^revision = '(\w+)'", text, re.MULTILINE))
        followed.update(re.findall(r"^down_revision = '(\w+)'", text, re.MULTILINE))
    (head,) = found - followed
    return head


def _require_same_migrations(source: Path, newest: Path) -> None:
    """Later releases have changed comments, and how shadow tables are made, which nothing reads: these don't count."""
    for path in source.glob("nova/db/*/migrations/versions/*.py"):
        there = newest / path.relative_to(source)
        assert _meaning(path) == _meaning(there), f"{path} is not as in the newest release"


def _meaning(path: Path) -> list[str]:
    functions = [each for each in ast.parse(path.read_text()).body if isinstance(each, ast.FunctionDef)]
    return [
        ast.dump(statement)
        for each in functions
        if each.name != "_create_shadow_tables"
        for statement in each.body
        if "shadow_" not in ast.unparse(statement)
    ]


def _objects(sources: Mapping[int, Path]) -> dict[str, dict[int, Any]]:
    """Of the objects that are written: the first release with each version -> the version, and the names of the fields."""
    found: dict[str, dict[int, Any]] = {name: {} for name in OLDEST}
    # Its fields are what images have.
    without_fields = "ImageMetaProps"
    for release, source in sources.items():
        for path in (source / "nova" / "objects").glob("*.py"):
            for each in ast.parse(path.read_text()).body:
                if isinstance(each, ast.ClassDef) and each.name in found:
                    described = _described(each)
                    if each.name == without_fields:
                        described["fields"] = ""
                    if described not in found[each.name].values():
                        found[each.name][release] = described
    return found


def _described(definition: ast.ClassDef) -> dict[str, Any]:
    values = {ast.unparse(each.targets[0]): each.value for each in definition.body if isinstance(each, ast.Assign)}
    fields = values.get("fields")
    names = [ast.literal_eval(key) for key in fields.keys if key is not None] if isinstance(fields, ast.Dict) else []
    # They say nothing of those that a base class has.
    return {"version": ast.literal_eval(values["VERSION"]), "fields": " ".join(sorted(names))}


@contextmanager
def _stubs(source: Path) -> Iterator[None]:
    keypair = ModuleType("nova.objects.keypair")
    keypair.KEYPAIR_TYPE_SSH, keypair.KEYPAIR_TYPE_X509 = "ssh", "x509"  # type: ignore[attr-defined]
    types = ModuleType("nova.db.types")
    made = {name: ModuleType(name) for name in ("nova", "nova.utils", "nova.objects", "nova.db")}
    made["nova"].utils = made["nova.utils"]  # type: ignore[attr-defined]
    made["nova.objects"].keypair = keypair  # type: ignore[attr-defined]
    made["nova.db"].types = types  # type: ignore[attr-defined]
    sys.modules.update({**made, keypair.__name__: keypair, types.__name__: types})
    exec(compile((source / "nova/db/types.py").read_text(), "types.py", "exec"), vars(types))
    try:
        yield
    finally:
        for name in [*made, keypair.__name__, types.__name__]:
            del sys.modules[name]


def _write_all(source: Path, server: str, url_of: Callable[[str], str]) -> None:
    wanted = _NAMES
    for kind in _KINDS:
        sections, made = _record(_scripts(source, kind), url_of(kind), wanted)
        # Databases of cells still have tables that have been in the API database for long.
        wanted -= made
        lines = [
            f"-- Nova's {kind} database on {server}, as the migrations of Nova {max(RELEASES)} make it: tables that are read.",
            "-- Written by python -m tests.integration.databases.nova_schemas",
        ]
        for revision, statements in sections.items():
            lines += ["", f"-- revision {revision}", *(f"{each};" for each in statements)]
        (FOLDER / f"{kind}.{server}.sql").write_text("\n".join(lines) + "\n")


def _record(scripts: ScriptDirectory, url: str, wanted: frozenset[str]) -> tuple[dict[str, list[str]], frozenset[str]]:
    """revision -> the statements of its migration; and all tables."""
    engine = sa.create_engine(url)
    sections: dict[str, list[str]] = {}
    with engine.begin() as connection:
        said: list[str] = []

        def note(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
            said.append(statement)

        event.listen(connection, "before_cursor_execute", note)
        for script in reversed(list(scripts.walk_revisions())):
            said.clear()
            with Operations.context(MigrationContext.configure(connection, opts={"render_as_batch": True})):
                script.module.upgrade()
            sections[script.revision] = _in_order(_compact(each) for each in said if _is_wanted(each, wanted))
        made = frozenset(sa.inspect(connection).get_table_names())
    engine.dispose()
    return sections, made


def _is_wanted(statement: str, wanted: frozenset[str]) -> bool:
    if _READS.match(statement) is not None:
        return False
    found = _TABLE.search(statement)
    # Types and databases belong to no table.
    return _OTHER_TYPE_OR_INDEX.match(statement.strip()) is None if found is None else found[1] in wanted


def _in_order(statements: Iterable[str]) -> list[str]:
    """The order in which a table's indexes are made is another one in each run."""
    grouped = itertools.groupby(statements, key=lambda each: " INDEX " in each.splitlines()[0])
    return [each for is_index, found in grouped for each in (sorted(found) if is_index else found)]


def _compact(statement: str) -> str:
    """Without what is of this run: the name of the database."""
    lines = (line.strip() for line in statement.splitlines() if line.strip())
    return re.sub(r"ALTER DATABASE `?\w+`?", "ALTER DATABASE", "\n ".join(lines))


if __name__ == "__main__":
    main()
