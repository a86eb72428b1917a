"""The environment optimize_llm_foundry: a fine-tuning script to make faster without changing what it computes."""
