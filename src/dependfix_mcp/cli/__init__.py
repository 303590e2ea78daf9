"""The command line for people and schedulers, on the same core as the server."""
