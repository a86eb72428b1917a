"""A folder under the expected name. Seen: sharded checkpoints. Expected: invalid."""


def make(material):
    material.target.mkdir()
    (material.target / "model-00001-of-00001.safetensors").write_bytes(material.damaged.read_bytes())
