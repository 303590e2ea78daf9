"""Asks the suspec CLI, contract 0.26.0, and believes only what it can check."""
