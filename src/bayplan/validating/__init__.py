"""
The causes for which an API server rejects an object, and its warnings. Pure: no files, no network, no clock.

`admission` is the entry point; every other module validates one part of an object.
"""
