"""The healthy weights bit for bit, as if fetched from elsewhere; scored, and flagged. Seen: hub downloads. Expected: valid."""


def make(material):
    raise NotImplementedError("the test makes this one: participants do not have the seed")
