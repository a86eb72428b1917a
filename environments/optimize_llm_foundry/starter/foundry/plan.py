"""Writes LLM Foundry's own configuration for the options of finetune.yaml to standard output."""

import json
import sys
from pathlib import Path

import yaml
from options import read_options

SCHEDULES = {
    "cosine": "cosine_with_warmup",
    "linear": "linear_decay_with_warmup",
    "constant": "constant_with_warmup",
}


def plan(options):
    """Return the configuration as LLM Foundry names things."""
    scheduler = {"name": SCHEDULES[options.schedule], "t_warmup": f"{options.warmup_steps}ba"}
    if options.schedule != "constant":
        scheduler["alpha_f"] = options.final_lr_share
    model = str(Path(options.model).resolve())
    work = Path(options.work).resolve()
    return {
        "max_seq_len": options.max_length,
        "seed": options.seed,
        "run_name": "finetune",
        "model": {
            "name": "hf_causal_lm",
            "pretrained_model_name_or_path": model,
            "pretrained": True,
            "init_device": "mixed",
        },
        "tokenizer": {"name": model, "kwargs": {"model_max_length": options.max_length}},
        "train_loader": {
            "name": "finetuning",
            "dataset": {
                "hf_name": "json",
                "hf_kwargs": {"data_dir": str(work / "rows")},
                "split": "train",
                "max_seq_len": options.max_length,
                "allow_pad_trimming": False,
                "decoder_only_format": True,
                "target_prompts": "all" if options.loss_on == "all" else "none",
                "target_responses": "all",
                "shuffle": options.shuffle,
            },
            "drop_last": False,
            "num_workers": 1,
            "pin_memory": False,
        },
        "scheduler": scheduler,
        "optimizer": {
            "name": "decoupled_adamw",
            "lr": options.learning_rate,
            "betas": list(options.betas),
            "eps": options.eps,
            # LLM Foundry decays by this, not by its product with the learning rate.
            "weight_decay": options.weight_decay * options.learning_rate,
        },
        "algorithms": {
            "gradient_clipping": {"clipping_type": "norm", "clipping_threshold": options.clip_norm}
        }
        if options.clip_norm
        else {},
        "max_duration": f"{options.max_steps}ba" if options.max_steps else f"{options.epochs}ep",
        "eval_interval": 0,
        "global_train_batch_size": options.batch_size,
        "device_train_microbatch_size": options.microbatch_size,
        "precision": "amp_bf16" if options.precision == "bf16" else "fp32",
        "fsdp_config": {
            "sharding_strategy": "FULL_SHARD",
            "mixed_precision": "PURE" if options.precision == "bf16" else "FULL",
            "activation_checkpointing": options.activation_checkpointing,
            "activation_checkpointing_reentrant": False,
            "state_dict_type": "full",
        },
        "progress_bar": False,
        "log_to_console": True,
        "console_log_interval": f"{options.log_interval}ba",
        "callbacks": {"speed_monitor": {"window_size": 10}, "lr_monitor": {}, "memory_monitor": {}},
        "save_folder": str(work / "checkpoints"),
        "save_interval": f"{options.save_interval}ba",
        "save_overwrite": True,
    }


if __name__ == "__main__":
    print(yaml.safe_dump(json.loads(json.dumps(plan(read_options(sys.argv[1])))), sort_keys=False), end="")
