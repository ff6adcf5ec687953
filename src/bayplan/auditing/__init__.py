"""Where nodes are, which requirements of a standard they meet, and what survives a loss. No files, clock, network."""
