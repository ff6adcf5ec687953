"""
The ranking of all targets for one kind of workload, corrected where changes touched it.

Rules of two sorts rank the targets. Some judge each target by itself, such as whether it has room; they give every
target a key. Others judge many targets alike, or on a scale between the lowest and the highest score; they shut and
grade whole districts. The best target is the one with the best key in the district that stands highest, so a placement
moves one key and a few districts. The result is the same as `filtering.run` and `scoring.run` give, which the tests
compare.
"""
