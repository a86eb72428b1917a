"""Restricted-architecture masked language modelling: train the best model that a few primitives allow."""
