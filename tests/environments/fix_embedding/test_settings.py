"""The profiles decode, and what is sealed stands nowhere in the open."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import msgspec
import pytest

from environments.contract import CANARY, SpecificationInvalid
from environments.fix_embedding.settings import KEYS as SEALED
from environments.fix_embedding.settings import decode_settings
from environments.kit.minigpt.network import MiniGPTConfig
from environments.reference import Recipe
from environments.sealing import PUBLIC_PASSPHRASE, open_sealed
from tests.environments.fix_embedding.models import FOLDER, FOUND


def test_every_profile_decodes_and_its_anchors_run_the_right_way() -> None:
    for name in ("cpu", "gpu", "paper"):
        profile = FOUND.spec.profile(name)
        decode_settings(profile.settings)
        for anchors in profile.anchors:
            assert anchors.normalise(anchors.reference) == 1.0
            assert anchors.normalise(anchors.start) == 0.0
    assert FOUND.spec.profile("cpu").anchors[0].source == "measured"


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(SpecificationInvalid, match="colour"):
        decode_settings({**FOUND.spec.profile("cpu").settings, "colour": 1})


def test_minigpts_sizes_are_those_of_the_profile() -> None:
    sizes = json.loads((FOLDER.parent / "kit" / "minigpt" / "config.json").read_text())
    settings = decode_settings(FOUND.spec.profile("cpu").settings)
    for name in ("large", "helper"):
        found = MiniGPTConfig(**sizes[name]["sizes"])
        assert (found.vocabulary, found.context) == (settings.vocabulary, settings.length)


def test_the_brief_carries_the_canary_and_does_not_tell_what_the_damage_is() -> None:
    brief = (FOLDER / "brief.md").read_text()
    assert CANARY in brief
    assert not [
        word
        for word in ("permut", "shuffl", "swap", "order of the rows", "wrong place")
        if word in brief.lower()
    ]
    for file in (FOLDER / "starter").rglob("*.py"):
        assert "permut" not in file.read_text().replace(".permute(2, 0, 3, 1, 4)", "")


def test_the_reference_is_sealed_and_stands_nowhere_in_the_open() -> None:
    sealed = FOLDER / "protected" / "reference.sealed"
    assert CANARY.encode() in sealed.read_bytes()[:400]
    files = open_sealed(sealed, PUBLIC_PASSPHRASE)
    assert set(files) == {"reference.toml", "repair.py", "cpu/model.safetensors", "cpu/repair.py"}
    for name in ("repair.py", "cpu/repair.py"):
        assert CANARY in files[name].decode()
    plain = [path.name for path in (FOLDER / "protected").iterdir() if path.suffix != ".sealed"]
    assert plain == []
    assert SEALED.open(PUBLIC_PASSPHRASE).permutation_seed > 0


def test_only_the_damaged_weights_and_the_helper_are_in_the_open() -> None:
    shipped = sorted(path.name for path in FOLDER.rglob("*.safetensors"))
    assert shipped == ["damaged.safetensors", "helper.safetensors"]


@pytest.mark.parametrize("profile", ["gpu", "paper"])
def test_the_recipe_of_a_large_profile_makes_what_is_handed_in_and_takes_no_weights_along(
    profile: str, tmp_path: Path
) -> None:
    files = open_sealed(FOLDER / "protected" / "reference.sealed", PUBLIC_PASSPHRASE)
    recipe = msgspec.convert(tomllib.loads(files["reference.toml"].decode()), dict[str, Recipe])[profile]
    assert "model.safetensors" in recipe.makes
    assert recipe.make[1] in files
    assert not [name for name in files if name.startswith(f"{profile}/") or name == "model.safetensors"]
