"""A header that claims to be 2^63 bytes long. Seen: allocation bombs. Expected: invalid."""


def make(material):
    material.target.write_bytes((2**63).to_bytes(8, "little") + b"{}")
