"""Laid as `one.py` where the starter is the one for cards: tokenise and convert here, train here or in a process for each card."""

import os
import socket

import convert
import tokenise
import torch
import train
from torch.distributed.run import main as launch

tokenise.main("finetune.yaml")
cards = max(1, torch.cuda.device_count())
if cards > 1:
    launch(["--standalone", "--nproc-per-node", str(cards), "train.py", "finetune.yaml"])
else:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ |= {
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    train.main("finetune.yaml")
convert.main("finetune.yaml")
