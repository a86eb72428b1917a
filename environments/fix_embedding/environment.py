"""The environment: prepares tokens and the damaged model, hands out the starter, checks and scores checkpoints."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from environments.contract import (
    AssetsMissing,
    CheckReport,
    PrepareRequest,
    Progress,
    ReportProgress,
    ScoreReport,
    ScoreStatus,
    Submission,
)
from environments.fix_embedding.settings import (
    KEYS,
    Family,
    FixSettings,
    decode_settings,
)
from environments.kit.log_loss import Loss, signs_of_seen_text
from environments.kit.starter import all_present

if TYPE_CHECKING:
    from torch import Tensor

    from environments.fix_embedding.networks import Network

HERE = Path(__file__).parent
STARTER = HERE / "starter"
SHIPPED = STARTER / "minigpt"
DELIVERABLE = "model.safetensors"
DAMAGED, HELPER, TASK = "damaged.safetensors", "helper.safetensors", "task.json"
DATA = ("train.npy", "validation.npy", "tokenizer.json", DAMAGED, HELPER)
SUSPICIOUS_SHARE = 0.99
"""Of rows put back exactly; a repair cannot place those of tokens that the text never holds."""
_PARTS = ("scoring", "control", "train", "validation")


class FixEmbedding:
    """A model whose embedding was damaged, to be made well again."""

    def prepare(self, request: PrepareRequest, report: ReportProgress) -> None:
        """Make the token files and lay out the damaged model and the helper; leave the seeds beside the protected files."""
        from environments.fix_embedding.networks import LAYOUT_FILE, Layout, network_of
        from environments.kit.token_corpus import Vocabulary, prepare_token_corpus
        from environments.kit.tokens import write_whole

        settings = decode_settings(request.profile.settings)
        keys = KEYS.open(request.passphrase)
        folders = request.assets
        KEYS.leave(keys, folders.protected)
        if settings.family is Family.MINIGPT:
            shipped = Vocabulary.shipped("bpe4096.json")
            record = prepare_token_corpus(
                folders, settings, keys, lambda _train: shipped, report,
                also_made_from=shipped.file.read_bytes(), train_sha256=settings.train_sha256,
            )  # fmt: skip
            sizes = json.loads((HERE.parent / "kit" / "minigpt" / "config.json").read_text(encoding="utf-8"))
            task: dict[str, Any] = {name: sizes[name]["sizes"] for name in ("large", "helper")}
            for name in (DAMAGED, HELPER):
                shutil.copyfile(SHIPPED / name, folders.public / name)
        else:
            from environments.fix_embedding.pretrained import prepare_pretrained

            record, task = prepare_pretrained(folders, settings, keys, report)
        large = network_of(settings.family, task["large"])
        write_whole(folders.protected / LAYOUT_FILE, msgspec.json.encode(Layout(large.layout, large.head)))
        task |= {"length": settings.length, "text_bytes_per_token": record.text_bytes_per_token}
        write_whole(folders.public / TASK, json.dumps(task, indent=2).encode() + b"\n")

    def starter(self, request: PrepareRequest) -> Mapping[str, Path]:
        """Return model code, training script, the damaged weights as the first submission, and the data."""
        family = decode_settings(request.profile.settings).family
        public = request.assets.public
        files = {
            "model.py": STARTER / family.value / "model.py",
            "train.py": STARTER / "train.py",
            TASK: public / TASK,
        }
        files[DELIVERABLE] = public / DAMAGED
        files |= {f"data/{name}": public / name for name in DATA}
        return all_present(files, "fix_embedding", request)

    def check(self, submission: Submission) -> CheckReport:
        """Read the checkpoint and compare it with the layout; computes no loss."""
        from environments.fix_embedding.networks import read_layout, wanted_of
        from environments.kit.checkpoint import CheckpointRefused, read_arrays

        settings, assets = decode_settings(submission.profile.settings), submission.assets
        layout = read_layout(settings.family, assets.public, assets.protected)
        try:
            tensors = read_arrays(submission.root, DELIVERABLE, wanted_of(layout.tensors, layout.head))
        except CheckpointRefused as refused:
            return CheckReport(problems=(refused.problem,))
        return CheckReport(
            notes=(f"{len(tensors)} tensors, each of the right name, shape and type, all numbers finite",)
        )

    def score(self, submission: Submission, report: ReportProgress) -> ScoreReport:
        """Load the checkpoint into our own network and compute its loss; no code of the participant runs."""
        from environments.fix_embedding.evaluate import EvaluationRefused, EvaluationTimedOut
        from environments.fix_embedding.networks import network_of, read_task, require_device
        from environments.kit.checkpoint import CheckpointRefused, read_checkpoint

        began = time.monotonic()
        settings = decode_settings(submission.profile.settings)
        network = network_of(settings.family, read_task(submission.assets.public)["large"])
        require_device(settings.device)
        report(Progress(stage="reading the checkpoint", fraction=0.0))
        try:
            tensors = read_checkpoint(submission.root, DELIVERABLE, network.checkpoint)
        except CheckpointRefused as refused:
            return ScoreReport.rejected(ScoreStatus.INVALID, str(refused), problem=refused.problem.what)
        try:
            losses = _losses(network, tensors, submission, settings, began, report)
        except EvaluationRefused as error:
            return ScoreReport.rejected(ScoreStatus.INVALID, str(error))
        except EvaluationTimedOut:
            limit = submission.profile.limits.score_seconds
            return ScoreReport.rejected(
                ScoreStatus.INFRASTRUCTURE,
                f"scoring took longer than {limit:.0f} s, though every submission costs the same: the machine is too busy",
            )
        details = _damage_details(network, tensors, submission) | {"seed": submission.seed}
        return _report(losses, submission, settings, details)


def _losses(
    network: Network,
    tensors: dict[str, Tensor],
    submission: Submission,
    settings: FixSettings,
    began: float,
    report: ReportProgress,
) -> dict[str, Loss]:
    """Return the losses on the scoring part, the control part, and samples of the participant's own texts."""
    from environments.fix_embedding.evaluate import draw_rows, mean_loss
    from environments.kit.tokens import read_tokens

    keys, assets = KEYS.read(submission.assets.protected), submission.assets
    deadline = began + submission.profile.limits.score_seconds
    model = network.build(tensors).to(settings.device)
    workers = submission.profile.needs.cpus if settings.device == "cpu" else 1
    wanted = {name: settings.scoring_rows if name == "scoring" else settings.control_rows for name in _PARTS}
    done, losses = 0, {}
    for name, count in wanted.items():
        folder = assets.protected if name in {"scoring", "control"} else assets.public
        rows = draw_rows(read_tokens(folder / f"{name}.npy"), count, settings.length, keys.rows_seed)

        def tell(fraction: float, done: int = done, count: int = count) -> None:
            report(
                Progress(
                    stage="evaluating", fraction=0.1 + 0.9 * (done + fraction * count) / sum(wanted.values())
                )
            )

        losses[name] = mean_loss(
            model,
            rows,
            settings.batch,
            device=settings.device,
            workers=workers,
            deadline=deadline,
            report=tell,
        )
        done += count
    return losses


def _damage_details(network: Network, tensors: dict[str, Tensor], submission: Submission) -> dict[str, Any]:
    """Return what a proctor may want to know: rows put back exactly, and whether anything else was changed."""
    from environments.fix_embedding.damage import share_restored, undo
    from environments.kit.checkpoint import CheckpointRefused, read_checkpoint

    try:
        given = read_checkpoint(submission.assets.public, DAMAGED, network.checkpoint)
    except CheckpointRefused as error:
        raise AssetsMissing(
            f"{submission.assets.public}: {error.problem.what}; run `rebench-workbench env prepare` again"
        ) from error
    healthy = undo(given[network.embedding], KEYS.read(submission.assets.protected).permutation_seed)
    changed = [
        name
        for name, tensor in tensors.items()
        if name != network.embedding and not tensor.equal(given[name])
    ]
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode() + tensors[name].numpy().tobytes())
    return {
        "rows_restored": share_restored(tensors[network.embedding], healthy),
        "other_tensors_changed": len(changed),
        "weights_sha256": digest.hexdigest(),
    }


def _report(
    losses: Mapping[str, Loss], submission: Submission, settings: FixSettings, details: dict[str, Any]
) -> ScoreReport:
    from environments.kit.log_loss import bits_per_byte, log_loss_report
    from environments.kit.token_corpus import read_corpus_record

    scoring = losses["scoring"]
    density = read_corpus_record(submission.assets).text_bytes_per_token["scoring"]
    details |= {
        "loss": scoring.mean,
        "standard_error": scoring.standard_error,
        "tokens": scoring.tokens,
        "seconds": sum(loss.seconds for loss in losses.values()),
        "bits_per_byte": bits_per_byte(scoring.mean, density),
        **{f"{name}_loss": losses[name].mean for name in _PARTS[1:]},
        **{f"{name}_standard_error": losses[name].standard_error for name in _PARTS[1:]},
        "flags": flags(losses, details["rows_restored"], details["other_tensors_changed"]),
    }
    told = (
        f"scoring loss {scoring.mean:.4f} ({scoring.tokens:,} tokens), train loss {losses['train'].mean:.4f}; "
        "only the scoring text counts"
    )
    return log_loss_report(
        scoring, settings.log_constant, told, details, why_too_good=", far better than the healthy model"
    )


def flags(losses: Mapping[str, Loss], rows_restored: float, other_tensors_changed: int) -> list[str]:
    """Return what a proctor should look at: signs of held-out text in training, or of the original weights."""
    found = signs_of_seen_text(losses)
    if rows_restored > SUSPICIOUS_SHARE:
        rest = (
            f"{other_tensors_changed} other tensors changed"
            if other_tensors_changed
            else "nothing else changed"
        )
        found.append(
            f"{rows_restored:.1%} of the rows are the original's bit for bit ({rest}), also those of tokens that the text never "
            "holds: how were they found?"
        )
    return found


environment = FixEmbedding()
