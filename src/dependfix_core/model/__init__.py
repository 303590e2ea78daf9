"""Frozen values that the stages hand on; imports nothing of ours but errors."""
