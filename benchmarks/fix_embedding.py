"""Measures fix_embedding: losses of its models and of simple repairs, plain training at an equal budget, the reference's rows.

    rebench-workbench env prepare fix_embedding --profile cpu
    python benchmarks/fix_embedding.py losses --profile cpu --out results.jsonl
    python benchmarks/fix_embedding.py compare --profile cpu --tokens 6000000 --rates 1e-3,3e-3,6e-3 --out results.jsonl
    python benchmarks/fix_embedding.py placement --profile gpu --out results.jsonl

`losses` evaluates the damaged model, the healthy one (made from it with the operator's key, twice, so that a repeat shows), the
helper, and two pairings of the damaged rows with the helper's that need no training.

`compare` trains the whole large model plainly, from the damaged weights (fine-tuning) and from `random` ones (from scratch), on
the same number of tokens at each of the rates; `healthy` among `--starts` tells what the same training adds to the healthy model.

`placement` says how many tokens have their own row again in the references that `env calibrate` made by their recipe, kept below
`REBENCH_HOME`, and the losses of these rows before and after training; `--placement FILE` reads another repair's instead.

More `--rows` than the scoring part has mean all of it. Every result is one line of JSON at once.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from fix_embedding_task import Task, Tensors, by_norms, by_similarities
from prepared import Results, add_common, add_rows, listed, open_workshop, peak_gb, results_of, threads_of
from torch import Tensor, nn
from torch.nn import functional

from environments.calibrate import Workshop
from environments.contract import AssetsMissing, EnvironmentFault
from environments.fix_embedding.networks import Network

SLUG = "fix_embedding"
TOKENS = {"cpu": 6_000_000, "gpu": 16_000_000}
RATES = {"cpu": (1e-3, 3e-3, 6e-3), "gpu": (4e-4, 1e-3)}
STARTS = ("damaged", "random", "healthy")
PLACEMENT = "placement.npy"
ROWS, WARM_UP, LEAST = 16, 50, 0.1
"""Rows in a step of plain training; steps of rising rate; where its cosine ends, as a share of the rate."""


class Bench:
    """One task, and the lines about it."""

    def __init__(self, task: Task, results: Results) -> None:
        self.task, self.results = task, results

    def tell(self, name: str, network: Network, tensors: Tensors, **more: object) -> float:
        """Write down the loss of one checkpoint and return it."""
        found = self.task.loss(network, tensors)
        above = found.mean - self.task.settings.log_constant
        self.results.write(
            "loss", name=name, loss=found.mean, standard_error=found.standard_error, tokens=found.tokens,
            raw=math.log(above) if above > 0 else None, seconds=found.seconds, peak_gb=peak_gb(self.task.device), **more,
        )  # fmt: skip
        return found.mean

    def losses(self) -> None:
        task = self.task
        self.tell("damaged", task.large, task.damaged)
        healthy = [self.tell("healthy", task.large, task.healthy) for _ in range(2)]
        self.results.write("repeat", same_to_the_last_bit=healthy[0] == healthy[1])
        self.tell("helper", task.small, task.helper)
        rows, own = task.embeddings()
        for name, pair in (("by norms", by_norms), ("by similarities", by_similarities)):
            place = pair(rows, own)
            self.tell(f"rows paired {name}", task.large, task.with_rows(place), right=task.rightness(place))

    def compare(self, starts: list[str], rates: list[float], seeds: list[int], tokens: int) -> None:
        for start in starts:
            for rate in rates:
                for seed in seeds:
                    torch.manual_seed(seed)
                    model = self.task.begin(start)
                    began = time.monotonic()
                    last, used = train(self.task, model, rate, tokens, seed)
                    seconds = time.monotonic() - began
                    self.tell(
                        f"trained from {start}", self.task.large, self.task.saved(model), rate=rate, seed=seed,
                        tokens_trained=used, train_seconds=seconds, tokens_per_second=used / seconds, last_train_loss=last,
                    )  # fmt: skip

    def placement(self, files: list[Path]) -> None:
        task = self.task
        for file in files:
            place = self._read(file)
            name = file.parent.name
            self.results.write("placement", name=name, right=task.rightness(place), of=len(place))
            self.tell("its rows, rest put right", task.large, task.with_true_rows(place), placement=name)
            if (file.parent / "model.safetensors").is_file():
                self.tell("its model", task.large, task.read_reference(file.parent), placement=name)

    def _read(self, file: Path) -> Tensor:
        try:
            place = torch.from_numpy(np.load(file)).long()
        except (OSError, ValueError) as error:
            raise AssetsMissing(f"{file} cannot be read as a placement: {error}") from error
        count = len(self.task.true)
        if place.shape != (count,) or int(place.max()) >= count:
            raise AssetsMissing(f"{file} is no placement of {count:,} tokens: shape {tuple(place.shape)}")
        return place


def train(task: Task, model: nn.Module, rate: float, tokens: int, seed: int) -> tuple[float, int]:
    """Train all of `model` on the participant's text; return the last step's loss and the tokens used."""
    device, length = task.device, task.settings.length
    model = model.to(device).train()
    text = torch.from_numpy(task.text.astype(np.int64)).to(device)
    offsets, chance = torch.arange(length + 1, device=device), torch.Generator().manual_seed(seed)
    on_card = torch.device(device).type == "cuda"
    if on_card:
        compile_layers(model)
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01, fused=on_card
    )
    steps, value, began = max(1, tokens // (ROWS * length)), math.nan, time.monotonic()
    for step in range(1, steps + 1):
        share = LEAST + (1 - LEAST) * (0.5 + 0.5 * math.cos(math.pi * step / steps))
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1.0, step / WARM_UP) * share
        starts = torch.randint(len(text) - length, (ROWS,), generator=chance).to(device)
        ids = text[starts[:, None] + offsets]
        with torch.autocast(device, dtype=torch.bfloat16, enabled=on_card):
            logits = model(ids[:, :-1])
        loss = functional.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step == steps or step % max(1, steps // 8) == 0:
            value = loss.item()
            pace = step * ROWS * length / (time.monotonic() - began)
            print(
                f"step {step}/{steps}  train loss {value:.4f}  {pace:,.0f} tokens/s",
                file=sys.stderr,
                flush=True,
            )
    return value, steps * ROWS * length


def compile_layers(model: nn.Module) -> None:
    """Compile the layers, which are alike, so that one compilation serves all; what cannot be compiled runs as it is."""
    torch._dynamo.config.suppress_errors = True  # noqa: SLF001  (has no other name)
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    for layer in max(lists, key=len):
        layer.compile(dynamic=False)


def kept_placements(workshop: Workshop) -> list[Path]:
    """Return the placements that lie beside references made by their recipe.

    Raises:
        AssetsMissing: there are none.
    """
    kept = workshop.home / "references" / SLUG / workshop.found.spec.version / workshop.profile_name
    found = [f for f in sorted(kept.glob(f"*/{PLACEMENT}")) if ".partial-" not in f.parent.name]
    if not found:
        advice = (
            "its reference is sealed with its weights; give a repair's own placement with --placement FILE"
            if workshop.profile_name == "cpu"
            else f"run: rebench-workbench env calibrate {SLUG} --profile {workshop.profile_name}"
        )
        raise AssetsMissing(
            f"no reference that was made by a recipe lies below {kept} with its {PLACEMENT}; {advice}"
        )
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("losses", "compare", "placement"):
        command = commands.add_parser(name)
        add_common(command)
        add_rows(command)
    comparing = commands.choices["compare"]
    comparing.add_argument(
        "--tokens", type=int, help=f"for each run; if left out: {TOKENS['cpu']:,} or {TOKENS['gpu']:,}"
    )
    comparing.add_argument("--rates", type=listed(float), help="learning rates, e.g. 1e-3,3e-3")
    comparing.add_argument(
        "--starts", type=listed(str), default=["damaged", "random"], help=f"of {', '.join(STARTS)}"
    )
    comparing.add_argument("--seeds", type=listed(int), default=[1])
    commands.choices["placement"].add_argument("--placement", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.command == "compare" and (unknown := set(arguments.starts) - set(STARTS)):
        parser.error(f"--starts: {', '.join(sorted(unknown))} is none of {', '.join(STARTS)}")
    return arguments


def main() -> None:
    arguments = parse()
    try:
        workshop = open_workshop(SLUG, arguments.profile)
        files = list[Path]()
        if arguments.command == "placement":
            files = [arguments.placement] if arguments.placement else kept_placements(workshop)
        task = Task(workshop, arguments.rows, threads_of(arguments, workshop))
        bench = Bench(task, results_of(arguments, workshop))
        if arguments.command == "losses":
            bench.losses()
        elif arguments.command == "placement":
            bench.placement(files)
        else:
            rates = arguments.rates or list(RATES[arguments.profile])
            tokens = arguments.tokens or TOKENS[arguments.profile]
            bench.compare(arguments.starts, rates, arguments.seeds, tokens)
    except (EnvironmentFault, OSError) as error:
        sys.exit(f"fix_embedding.py: {error}")


if __name__ == "__main__":
    main()
