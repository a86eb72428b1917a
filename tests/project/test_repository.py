"""What must hold of every file in the repository."""

import ast
import io
import re
import subprocess
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("workbench", "sessions", "environments")
LARGEST_REPOSITORY = 25_000_000

# The one-letter classes keep this file from naming what it looks for.
MACHINE_PATHS = re.compile(r"(?<!\w)(/wor[k]/(main|venv|shared|notes)\b|/roo[t]/\w)")
REGISTRY_HOSTS = re.compile(r"pypi[.]org|pythonhosted[.]org|registry[.]npmjs|download[.]pytorch|deb[.]debian")
AMERICAN = re.compile(
    r"\b(normaliz|behavior|color|serializ|initializ|summariz|organiz|recogniz|minimiz|maximiz|favor)\w*",
    re.IGNORECASE,
)


def tracked(*patterns: str) -> list[Path]:
    """Files under version control, and new ones about to be."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    return [path for name in listing.decode().split("\0") if name and (path := ROOT / name).is_file()]


def texts() -> list[tuple[Path, str]]:
    found = []
    for path in tracked():
        try:
            found.append((path, path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return found


def lines_that_match(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:160]}"
        for path, text in texts()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def test_no_file_names_a_path_of_somebodys_machine() -> None:
    assert lines_that_match(MACHINE_PATHS) == []


def test_no_file_names_a_package_registry() -> None:
    assert lines_that_match(REGISTRY_HOSTS) == []


def test_the_repository_stays_small() -> None:
    sizes = {path: path.stat().st_size for path in tracked()}
    largest = sorted(sizes, key=lambda path: -sizes[path])[:5]
    assert sum(sizes.values()) < LARGEST_REPOSITORY, [(str(path), sizes[path]) for path in largest]


def test_answer_keys_and_solutions_are_under_version_control_only_when_sealed() -> None:
    protected = tracked("environments/*/protected/*")
    plain = [
        str(path.relative_to(ROOT))
        for path in protected
        if path.suffix != ".sealed" and path.name != "README.md"
    ]
    assert plain == []


def test_every_sealed_archive_is_encrypted_and_bears_the_canary() -> None:
    from environments.contract import CANARY

    for archive in tracked("environments/*/protected/*.sealed"):
        header, _, body = archive.read_bytes().partition(b"}\n")
        assert CANARY.encode() in header, archive
        assert not body.startswith((b"\xfd7zXZ", b"\x1f\x8b", b"PK")), archive


def test_every_module_says_its_job_at_its_top() -> None:
    modules = [
        path for package in PACKAGES for path in tracked(f"{package}/*.py") if "starter" not in path.parts
    ]
    modules += tracked("scripts/*.py")
    silent = [
        str(path.relative_to(ROOT))
        for path in modules
        if (text := path.read_text(encoding="utf-8")).strip() and not ast.get_docstring(ast.parse(text))
    ]
    assert silent == []


def prose(path: Path, text: str) -> str:
    """The sentences of a file: of Markdown without code, of Python the comments and docstrings without names in quotes."""
    if path.suffix == ".md":
        return re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", " ", text, flags=re.DOTALL)
    tree = ast.parse(text)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    said = [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, documented)]
    said += [
        token.string
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and "noqa" not in token.string and "type:" not in token.string
    ]
    return re.sub(r"`[^`]*`|\"[^\"]*\"|'[^']*'", " ", "\n".join(said))


def test_prose_is_spelt_the_british_way() -> None:
    american = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path, text in texts()
        if path.suffix in {".md", ".py"} and "cheats" not in path.parts
        for match in AMERICAN.finditer(prose(path, text))
    ]
    assert american == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# the behavior of it\n", True),
        ("# the behaviour of it\n", False),
        ("x.color = 1  # see `color`\n", False),
    ],
)
def test_the_spelling_check_sees_prose_and_not_names(text: str, found: bool) -> None:
    assert bool(AMERICAN.search(prose(Path("x.py"), text))) == found
