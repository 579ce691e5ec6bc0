"""What we are measured against: scripts that run in environments of their own, where those packages are installed."""
