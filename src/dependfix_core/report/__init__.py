"""What a run came to, as one result, and that result as files for people and programs."""
