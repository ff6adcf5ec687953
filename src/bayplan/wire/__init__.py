"""
API objects as written, field for field: absent (`None`) and empty are kept apart, and nothing is interpreted.

`kinds` is the registry of kinds. Decoding ignores unknown fields, since API servers add fields; `reading.checking`
finds misspelt ones.
"""
