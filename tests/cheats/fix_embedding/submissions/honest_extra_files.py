"""Leaves code, notes and another checkpoint beside the file. Seen: any work tree. Expected: valid."""


def make(material):
    material.target.write_bytes(material.damaged.read_bytes())
    (material.root / "model.py").write_text("raise SystemExit('this runs nowhere')")
    (material.root / "config.json").write_text('{"layers": 1}')
    (material.root / "model-2.safetensors").write_bytes(b"anything")
