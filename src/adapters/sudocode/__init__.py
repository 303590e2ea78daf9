"""The sudocode command line program as typed operations that never lose what its project holds."""
