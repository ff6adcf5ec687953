"""
The scheduler as plain loops over plain objects: slow, readable, and independent of the engine it checks.

One module per rule, named after what it looks at; `pods.answer` puts them together. Nothing here is fast, nothing here
is shared with `bayplan.indexing` or `bayplan.rules`, and nothing here is used by the product.
"""
