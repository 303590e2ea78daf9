"""Python: requirements trees, pyproject dialects, and the locks of pip-tools, pipenv, poetry, uv, pdm and PEP 751."""
