# tries: another graph sent in place of the model's, by patching the capture; seen: checkers un-patched upstream; verdict: invalid, `exp`
import torch
from environments.restricted_mlm import capture
from environments.restricted_mlm.graph import Graph, Node, Ref
from torch import nn


def forged(model, vocabulary, length, root):
    nodes = [
        Node("x", "aten.embedding.default", [Ref("w"), Ref("ids")], {}, "model.py:1"),
        Node("y", "aten.exp.default", [Ref("x")], {}, "model.py:2"),
    ]
    return Graph(1, {"w": "w"}, nodes, "y"), {"w": torch.zeros(vocabulary, vocabulary)}


capture.capture = forged


def get_trained_model():
    return nn.Linear(1, 1)
