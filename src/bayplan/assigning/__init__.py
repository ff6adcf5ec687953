"""From scores to targets: the best node, or the clusters with the replicas of each."""
