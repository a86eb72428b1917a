#!/usr/bin/env bash
# Fine-tunes the model that finetune.yaml names: tokenise the rows, train, convert the checkpoint.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

python tokenise.py finetune.yaml
python train.py finetune.yaml
python convert.py finetune.yaml
