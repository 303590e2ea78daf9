"""The MCP server, and a thin command line on the same core."""
