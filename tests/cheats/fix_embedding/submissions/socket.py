"""A socket under the expected name. Seen: no. Expected: invalid."""

import os
import socket


def make(material):
    here = os.getcwd()
    os.chdir(material.root)  # a socket's path must be short
    try:
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(material.target.name)
    finally:
        os.chdir(here)
