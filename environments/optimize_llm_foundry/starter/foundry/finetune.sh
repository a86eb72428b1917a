#!/usr/bin/env bash
# Fine-tunes the model that finetune.yaml names with LLM Foundry: prepare the rows, train, convert the checkpoint.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

python rows.py finetune.yaml
python plan.py finetune.yaml > train.yaml
composer -m llmfoundry.cli.cli train train.yaml
python convert.py finetune.yaml
