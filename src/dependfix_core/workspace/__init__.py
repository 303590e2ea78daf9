"""Local checkouts: what they are, and which repository they belong to."""
