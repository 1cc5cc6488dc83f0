"""The house rules that a reader of the tree can check (docs/architecture.md): each failure names the file and the remedy."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
APPS = ("portal", "fleet", "models_app", "routing")
SOURCES = sorted(path for app in APPS for path in (ROOT / app).rglob("*.py") if "migrations" not in path.parts)
TESTS = sorted((ROOT / "tests").rglob("*.py"))
TREES = {path: ast.parse(path.read_text()) for path in [*SOURCES, *TESTS]}


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _calls(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node.lineno, ast.unparse(node.func)


def _attributes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.lineno, ast.unparse(node)


def test_there_are_sources_to_check() -> None:
    assert len(SOURCES) > 60


def test_no_drawer_without_a_name_of_its_own() -> None:
    drawers = {"utils.py", "helpers.py", "common.py", "misc.py"}
    found = [_name(path) for path in [*SOURCES, *TESTS] if path.name in drawers]
    assert found == [], "name the file after the noun it holds"


def test_the_clock_is_read_in_the_kernel_only() -> None:
    readers = {"datetime.now", "datetime.utcnow", "timezone.now", "date.today", "datetime.today", "time.time"}
    found = [
        f"{_name(path)}:{line} {call}"
        for path in SOURCES
        if _name(path) != "portal/kernel/clock.py"
        for line, call in _calls(TREES[path])
        if call in readers
    ]
    assert found == [], "take the instant from portal.kernel.clock.now()"


def test_the_environment_is_read_in_settings_only() -> None:
    found = [
        f"{_name(path)}:{line} {name}"
        for path in SOURCES
        if "settings" not in path.parts
        for line, name in _attributes(TREES[path])
        if name in {"os.environ", "os.getenv"}
    ]
    assert found == [], "add a typed setting in portal/settings and read it from django.conf.settings"


def test_no_save_override_and_no_signal() -> None:
    found = []
    for path in SOURCES:
        for node in ast.walk(TREES[path]):
            if isinstance(node, ast.FunctionDef) and node.name in {"save", "delete"} and "models" in path.parts:
                found.append(f"{_name(path)}:{node.lineno} {node.name}")
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("django.db.models.signals"):
                found.append(f"{_name(path)}:{node.lineno} signals")
    assert [item for item in found if "scoping.py" not in item] == [], "write a service: <noun>_<verb>(*, actor, …)"


def test_no_swallowed_error() -> None:
    found = []
    for path in SOURCES:
        for node in ast.walk(TREES[path]):
            if not isinstance(node, ast.ExceptHandler):
                continue
            broad = node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"}
            silent = all(isinstance(child, ast.Pass | ast.Continue | ast.Return) for child in node.body)
            if broad and silent:
                found.append(f"{_name(path)}:{node.lineno}")
    assert found == [], "catch the error you expect, and say what happens to it"


def test_no_sleep_in_tests_and_no_unexplained_skip() -> None:
    found = []
    for path in TESTS:
        for line, call in _calls(TREES[path]):
            if call in {"time.sleep", "asyncio.sleep"}:
                found.append(f"{_name(path)}:{line} {call}")
        for node in ast.walk(TREES[path]):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"pytest.skip", "pytest.mark.skip"}:
                if not node.args and not any(keyword.arg == "reason" for keyword in node.keywords):
                    found.append(f"{_name(path)}:{node.lineno} skip without a reason")
            if isinstance(node, ast.Attribute) and ast.unparse(node) == "pytest.mark.xfail":
                found.append(f"{_name(path)}:{node.lineno} xfail")
    assert found == [], "wait on the condition itself (tests/waiting.py); say why a test is skipped"


def test_no_left_over_work() -> None:
    mark = re.compile(r"\b(" + "TO" + "DO|FIX" + "ME|X" + r"XX)\b")
    found = [
        f"{_name(path)}:{number}"
        for path in [*SOURCES, *TESTS]
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if mark.search(line)
    ]
    assert found == [], "do it, or write an issue"


def test_a_source_file_is_a_noun_not_a_drawer() -> None:
    found = [f"{_name(path)}: {len(path.read_text().splitlines())} lines" for path in SOURCES]
    long = [item for item in found if int(item.split(": ")[1].split()[0]) > 400]
    assert long == [], "split the room by noun"


def test_public_functions_of_the_lower_rooms_have_docstrings() -> None:
    rooms = {"services", "selectors", "domain", "kernel", "engines"}
    found = []
    for path in SOURCES:
        if not rooms & set(path.relative_to(ROOT).parts):
            continue
        for node in TREES[path].body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                trivial = isinstance(node, ast.FunctionDef) and len(node.body) == 1
                if ast.get_docstring(node) is None and not trivial and isinstance(node, ast.FunctionDef):
                    found.append(f"{_name(path)}:{node.lineno} {node.name}")
    assert found == [], "say what it takes and gives: shapes, units, errors"


def test_writes_are_keyword_only_and_name_their_actor() -> None:
    found, checked = [], 0
    for path in SOURCES:
        parts = path.relative_to(ROOT).parts
        if "services" not in parts or {"work", "audit"} & set(parts):
            continue
        for node in TREES[path].body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            if node.name != "record" and any(call in {"event_record", "_record"} for _, call in _calls(node)):
                checked += 1
                if node.args.args or "actor" not in {argument.arg for argument in node.args.kwonlyargs}:
                    found.append(f"{_name(path)}:{node.lineno} {node.name}")
    assert checked > 20
    assert found == [], "def <noun>_<verb>(*, actor, …)"


def test_celery_tasks_are_thin() -> None:
    found = []
    for path in SOURCES:
        if path.name != "tasks.py":
            continue
        for node in TREES[path].body:
            if isinstance(node, ast.FunctionDef) and node.decorator_list:
                length = (node.end_lineno or node.lineno) - node.lineno
                if length > 10:
                    found.append(f"{_name(path)}:{node.lineno} {node.name}: {length} lines")
    assert found == [], "ids in, call a service or a loop"


def test_every_path_that_common_tasks_names_exists() -> None:
    text = (ROOT / "docs" / "common-tasks.md").read_text()
    paths = re.findall(r"`((?:portal|fleet|models_app|routing|templates|tests|deploy|docs|bench)/[^`\s<>*]+)`", text)
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_lock_files_carry_no_registry_address() -> None:
    pinned = [*(ROOT / "requirements").glob("*.txt"), *(ROOT / "deploy/local/go").rglob("go.mod")]
    assert len(pinned) >= 6
    assert [_name(path) for path in pinned if re.search(r"https?://", path.read_text())] == []
    assert '"resolved"' not in (ROOT / "package-lock.json").read_text(), "set omit-lockfile-registry-resolved in .npmrc"
