"""The fewest changes after which a control plane meets the demands of an audit, and how to carry them out."""
