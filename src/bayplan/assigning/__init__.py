"""From scores to clusters, with the replicas of each."""
