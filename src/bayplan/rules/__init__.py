"""
The rules. `profiles.py` is the table of them: which apply, in which order, with which weight.
"""
