"""The package: its documentation, its exceptions, and the examples of its page."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

import frondb

ROOT = Path(__file__).parents[3]
STUB = Path(inspect.getfile(frondb)).with_suffix(".pyi")


def documented() -> dict[str, str]:
    """Returns the first paragraph of the documentation of each public name of the stub."""
    found: dict[str, str] = {}
    for node in ast.parse(STUB.read_text()).body:
        members: list[Any] = [node] if isinstance(node, (ast.ClassDef, ast.FunctionDef)) else []
        for member in members + (node.body if isinstance(node, ast.ClassDef) else []):
            if not isinstance(member, (ast.ClassDef, ast.FunctionDef)) or member.name.startswith("__"):
                continue
            name = member.name if member is node else f"{node.name}.{member.name}"  # type: ignore[attr-defined]
            text = ast.get_docstring(member)
            # The second form of an overloaded method has no text of its own.
            if text or name not in found:
                found[name] = " ".join((text or "").split("\n\n")[0].split()).replace("``", "`")
    return found


@pytest.mark.parametrize("name", documented())
def test_help_says_what_the_stubs_say(name: str) -> None:
    text = documented()[name]
    assert text.endswith((".", ":")), f"{name} has no documentation"
    thing: Any = frondb
    for part in name.split("."):
        thing = getattr(thing, part)
    if "Report." in name or "Contents." in name or "Estimate." in name:
        return
    shown = inspect.getdoc(thing) or ""
    assert " ".join(shown.split()).startswith(text), name


def test_every_kind_of_error_has_an_exception() -> None:
    page = ROOT / "docs/operating/errors.md"
    if not page.exists():
        pytest.skip("the tests run outside of the project")
    kinds = set(re.findall(r"^\| `(\w+)` \|", page.read_text(), re.MULTILINE))
    assert len(kinds) >= 16
    for kind in kinds:
        assert issubclass(getattr(frondb, kind), frondb.Error), kind


def test_exceptions_can_be_passed_between_processes() -> None:
    error = frondb.Corruption("bad block", file="data-0000.fdb", offset=7, what="data block")
    copy = pickle.loads(pickle.dumps(error))
    assert isinstance(copy, frondb.Corruption) and str(copy) == "bad block (data block at offset 7 of data-0000.fdb)"
    assert (copy.file, copy.offset, copy.what) == ("data-0000.fdb", 7, "data block")
    full = frondb.NoSpace("the disk is full", os_error=28)
    assert isinstance(full, OSError) and full.errno == 28 and str(full) == "the disk is full"
    assert pickle.loads(pickle.dumps(full)).errno == 28


def test_the_version_is_that_of_the_project() -> None:
    manifest = ROOT / "Cargo.toml"
    if not manifest.exists():
        pytest.skip("the tests run outside of the project")
    assert f'version = "{frondb.__version__}"' in manifest.read_text()


@pytest.mark.parametrize(("name", "least"), [("docs/operating/python.md", 9), ("README.md", 1)])
def test_the_examples_of_the_page_run(
    name: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ROOT / name
    if not page.exists():
        pytest.skip("the tests run outside of the project")
    monkeypatch.chdir(tmp_path)
    text = page.read_text()
    examples = list(re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    assert len(examples) >= least
    names: dict[str, object] = {}
    for example in examples:
        # Errors name the line of the page.
        line = text[: example.start(1)].count("\n")
        exec(compile("\n" * line + example.group(1), str(page), "exec"), names)
