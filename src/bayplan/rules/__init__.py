"""
The rules. `profiles.py` is the table of those for pods, `fleet_profile.py` for bindings: which apply, in which order.
"""
