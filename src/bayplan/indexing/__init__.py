"""The placement index: who is where, kept true change by change. The only mutable thing in the middle of the line."""
