"""Where nodes really sit, which rules that meets, and what survives a loss. No files, no clock, no network."""
