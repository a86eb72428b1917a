"""Stage 1: turns the rows of the training file into token ids, stored in compressed shards."""

import json
import lzma
import shutil
import sys
from pathlib import Path

from options import read_options
from transformers import AutoTokenizer

IGNORED = -100  # label of a position whose prediction is not trained


def encode(tokenizer, row, options):
    """Return (ids, labels) of one row, not yet padded."""
    prompt = tokenizer(row["prompt"], add_special_tokens=False)["input_ids"]
    response = tokenizer(row["response"], add_special_tokens=False)["input_ids"] + [tokenizer.eos_token_id]
    ids = prompt + response
    labels = list(ids) if options.loss_on == "all" else [IGNORED] * len(prompt) + response
    return ids[: options.max_length], labels[: options.max_length]


def trains_something(labels):
    """The first label is never predicted; a row with no other has nothing to teach."""
    return any(label != IGNORED for label in labels[1:])


def main(config):
    options = read_options(config)
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    shards = Path(options.work) / "shards"
    shutil.rmtree(shards, ignore_errors=True)
    shards.mkdir(parents=True)
    samples = []
    with Path(options.data).open(encoding="utf-8") as file:
        for line in file:
            ids, labels = encode(tokenizer, json.loads(line), options)
            if not trains_something(labels):
                continue
            padding = options.max_length - len(ids)
            samples.append(
                {
                    "ids": ids + [tokenizer.eos_token_id] * padding,
                    "labels": labels + [IGNORED] * padding,
                    "attention": [1] * len(ids) + [0] * padding,
                }
            )
    if not samples:
        raise SystemExit(f"{options.data} holds no row to train on")
    for start in range(0, len(samples), options.rows_per_shard):
        shard = samples[start : start + options.rows_per_shard]
        with lzma.open(shards / f"{start // options.rows_per_shard:05d}.json.xz", "wt") as file:
            json.dump(shard, file)
    index = {"samples": len(samples), "rows_per_shard": options.rows_per_shard}
    (shards / "index.json").write_text(json.dumps(index))
    print(f"tokenise: {len(samples)} rows in {len(list(shards.glob('*.xz')))} shards", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
