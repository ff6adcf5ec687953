"""The scheduler that runs: what it watches, decides and writes. Everything it knows is in the API server too."""
