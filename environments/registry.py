"""Finds environments without importing them, and imports one when it is wanted."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from environments.contract import (
    Environment,
    EnvironmentSpec,
    EnvironmentUnknown,
    Profile,
    SpecificationInvalid,
    Value,
)

ENTRY_POINT_GROUP = "rebench_workbench.environments"
SPECIFICATION = "environment.toml"
_BUILT_IN = Path(__file__).resolve().parent


class Found(Value, frozen=True):
    """An environment that was found but not imported."""

    spec: EnvironmentSpec
    folder: Path
    module: str
    """Importable name of the package that holds `environment.py`; empty for a bare folder."""

    @property
    def outside(self) -> Path | None:
        """Return the folder where it is not an installed one, which a slug alone would not find."""
        return None if self.module else self.folder


def all_found(folders: Iterable[Path] = ()) -> tuple[Found, ...]:
    """Return every environment, sorted by slug: built-in, installed plug-ins, and those in `folders`.

    Raises:
        SpecificationInvalid: an `environment.toml` does not decode, or two claim one slug.
    """
    by_slug: dict[str, Found] = {}
    for folder, module in _places(folders):
        found = Found(spec=read_specification(folder), folder=folder, module=module)
        rival = by_slug.setdefault(found.spec.slug, found)
        if rival.folder != folder:
            raise SpecificationInvalid(
                f"two environments call themselves {found.spec.slug!r}: {rival.folder} and {folder}"
            )
    return tuple(by_slug[slug] for slug in sorted(by_slug))


def find(slug: str, folders: Iterable[Path] = ()) -> Found:
    """Return the environment `slug`.

    A broken neighbour does not hide a good environment: only the specification asked for is decoded strictly.

    Raises:
        EnvironmentUnknown: none has that slug; the message lists what exists and suggests the nearest.
        SpecificationInvalid: its `environment.toml` does not decode.
    """
    slugs: set[str] = set()
    for folder, module in _places(folders):
        claimed = _claimed_slug(folder)
        if claimed == slug:
            return Found(spec=read_specification(folder), folder=folder, module=module)
        slugs.add(claimed)
    raise EnvironmentUnknown(_unknown(slug, sorted(slugs)))


def load(found: Found) -> Environment:
    """Import the environment's code and return its object named `environment`.

    Raises:
        SpecificationInvalid: there is no `environment.py`, or it defines no such object.
    """
    source = found.folder / "environment.py"
    if not source.is_file():
        raise SpecificationInvalid(f"{found.folder} holds no environment.py")
    module = importlib.import_module(f"{found.module}.environment") if found.module else _import_file(source)
    environment: Any = getattr(module, "environment", None)
    missing = [
        n for n in ("prepare", "starter", "check", "score") if not callable(getattr(environment, n, None))
    ]
    if missing:
        raise SpecificationInvalid(
            f"{source}: expected an object named `environment` that can prepare, starter, check and score; "
            f"missing: {', '.join(missing)}"
        )
    loaded: Environment = environment
    return loaded


def read_specification(folder: Path) -> EnvironmentSpec:
    """Decode `folder/environment.toml` strictly.

    Raises:
        SpecificationInvalid: names the file, the key, what was expected and what was found.
    """
    path = folder / SPECIFICATION
    raw = _read_toml(path)
    profiles = raw.get("profiles")
    if isinstance(profiles, dict):
        for name, table in profiles.items():
            _convert(table, Profile, path, f"profiles.{name}", raw)
    spec: EnvironmentSpec = _convert(raw, EnvironmentSpec, path, "", raw)
    if not spec.profiles:
        raise SpecificationInvalid(f"{path}: key `profiles`: expected at least one profile, found none")
    return spec


def _places(folders: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Yield (folder, module) of every place that holds an `environment.toml`; installed plug-ins come last."""
    for extra in folders:
        if (extra / SPECIFICATION).is_file():
            yield extra.resolve(), ""
        else:
            yield from ((p.parent.resolve(), "") for p in sorted(extra.glob(f"*/{SPECIFICATION}")))
    for path in sorted(_BUILT_IN.glob(f"*/{SPECIFICATION}")):
        yield path.parent, f"environments.{path.parent.name}"
    from importlib.metadata import (
        entry_points,
    )  # 20 ms that a call into a built-in environment need not wait for

    for point in entry_points(group=ENTRY_POINT_GROUP):
        folder = _package_folder(point.value)
        if folder is not None and (folder / SPECIFICATION).is_file():
            yield folder, point.value


def _package_folder(module: str) -> Path | None:
    """Resolve a package to its folder; only parents of a dotted name are imported, as Python requires."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))).resolve()


def _claimed_slug(folder: Path) -> str:
    """Return the slug a folder claims, or its own name where the file cannot be read."""
    try:
        return str(_read_toml(folder / SPECIFICATION).get("slug", folder.name))
    except SpecificationInvalid:
        return folder.name


def _unknown(slug: str, known: list[str]) -> str:
    if not known:
        return f"no environment {slug!r}: none is installed; looked in {_BUILT_IN} and entry points {ENTRY_POINT_GROUP}"
    nearest = difflib.get_close_matches(slug, known, n=1, cutoff=0.5)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else "."
    return f"no environment {slug!r}{hint} There are: {', '.join(known)}"


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SpecificationInvalid(f"{path}: cannot be read as TOML: {error}") from error


def _convert(value: Any, kind: Any, path: Path, prefix: str, raw: dict[str, Any]) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        wanted, _, where = str(error).partition(" - at `$")
        key = (prefix + where.removesuffix("`")).lstrip(".") or "(top level)"
        raise SpecificationInvalid(
            f"{path}: key `{key}`: {_lower_first(wanted)}{_found_at(raw, key)}"
        ) from error


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def _found_at(raw: Any, key: str) -> str:
    """Return ", found <value>" where `key` leads to a plain value."""
    for part in key.split("."):
        if not isinstance(raw, dict) or part not in raw:
            return ""
        raw = raw[part]
    return "" if isinstance(raw, dict) else f", found {raw!r}"


def _import_file(source: Path) -> Any:
    """Import a bare folder's `environment.py` under a name of its own."""
    name = f"rebench_folder_environment_{source.parent.name}"
    if name in sys.modules and getattr(sys.modules[name], "__file__", None) == str(source):
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, source)
    if spec is None or spec.loader is None:
        raise SpecificationInvalid(f"{source} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
