"""One folder for each ecosystem; `base` says what the planner asks of it."""
