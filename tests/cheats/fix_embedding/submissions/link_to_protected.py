"""A link to a file outside the tree, read with the scorer's rights. Seen: every scorer that opens paths. Expected: invalid."""


def make(material):
    material.target.symlink_to(material.damaged)
