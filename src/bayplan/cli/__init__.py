"""
The command line.

Modules here import only click, msgspec and each other at their top. A module that is slow to import is imported by the
function that needs it, so that help and completion are fast.
"""
