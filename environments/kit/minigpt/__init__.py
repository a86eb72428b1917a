"""minigpt: a small causal language model in GPT-2's shape, its network and how its shipped weights were trained."""
