"""Sessions without a screen: JSON-RPC on standard input and output, MCP, and running an agent's command."""
