"""
API objects as written: field for field, absent (`None`) and empty kept apart, nothing interpreted.

Decoding is lenient, as API servers add fields; whoever wants misspelt fields found asks `reading.checking`.
"""
