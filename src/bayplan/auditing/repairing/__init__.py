"""The fewest changes after which a control plane meets what is demanded of it, and how to carry them out."""
