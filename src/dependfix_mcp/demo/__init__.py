"""The demonstration that needs neither a token nor a network."""
