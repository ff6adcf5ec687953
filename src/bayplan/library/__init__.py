"""
What `import bayplan` offers: clusters and fleets that are read once, and the answers about them as values.

The public names are listed in `bayplan.__all__`. The command line is built on this package; everything below it may
change in any version.
"""
