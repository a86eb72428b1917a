#!/usr/bin/env bash
# Fine-tunes the model that finetune.yaml names: tokenise the rows, train on every graphics card, convert the checkpoint.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-4}"

cards=$(python -c 'import torch; print(max(1, torch.cuda.device_count()))')
python tokenise.py finetune.yaml
python -m torch.distributed.run --standalone --nproc-per-node "$cards" train.py finetune.yaml
python convert.py finetune.yaml
