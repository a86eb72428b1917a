"""A sparse file of a terabyte under the expected name. Seen: memory and disk bombs. Expected: invalid."""


def make(material):
    with material.target.open("wb") as file:
        file.truncate(2**40)
