"""
What an API server would refuse in an object, and what it would warn about. Pure: no files, no network, no clock.

`admission.causes_of` is the front door; every other module knows one part of an object.
"""
