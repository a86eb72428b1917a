"""Stage 1: copies the rows that LLM Foundry accepts to where its loader looks for them."""

import json
import shutil
import sys
from pathlib import Path

from options import read_options


def main(config):
    options = read_options(config)
    folder = Path(options.work) / "rows"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    kept = 0
    with (
        Path(options.data).open(encoding="utf-8") as file,
        (folder / "train.jsonl").open("w", encoding="utf-8") as out,
    ):
        for line in file:
            row = json.loads(line)
            if row["prompt"] and row["response"]:
                out.write(json.dumps({"prompt": row["prompt"], "response": row["response"]}) + "\n")
                kept += 1
    if not kept:
        raise SystemExit(f"{options.data} holds no row to train on")
    print(f"rows: {kept} rows", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
