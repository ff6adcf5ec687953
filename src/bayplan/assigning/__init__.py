"""From scores to targets: which one, or how many replicas on which."""
