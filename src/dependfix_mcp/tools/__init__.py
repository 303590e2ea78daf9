"""The tools, one module a toolset: validate, call the core or an adapter, shape the result."""
