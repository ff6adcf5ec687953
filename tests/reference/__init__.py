"""
The reference implementation of the scheduler: plain loops over plain objects, independent of the engine it checks.

One module per rule, named after the rule; `pods.answer` combines them. Nothing here is fast, nothing here is shared
with `bayplan.indexing` or `bayplan.rules`, and nothing here is used by the product.
"""
