"""A second name of a file elsewhere, to be changed while it is scored; it is read once. Seen: no. Expected: valid."""

import os


def make(material):
    os.link(material.damaged, material.target)
