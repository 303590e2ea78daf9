"""Reads and writes sudocode issues and specs through its CLI without losing any."""
