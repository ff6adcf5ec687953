"""
The command line: the front door that starts the others.

Modules here import only click and each other at their top; whatever takes time to import is imported by the function
that needs it, so that help and completion answer at once.
"""
