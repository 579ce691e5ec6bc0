"""Memory for AI agents: banks that are written to, searched, loaded, condensed and forgotten on time."""
