"""Place the pods of groups together: all that a group needs find a place, or none is placed."""
