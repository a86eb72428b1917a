"""Optimise a kernel: a conditional running sum of a long array, as fast as the machine allows."""
