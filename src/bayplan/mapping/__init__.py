"""
API objects mapped to model values: `wire` in, `model` out.

Every function is pure. Defaults, merged annotations and upstream's rules of interpretation are applied here, so that
the model has one form for each meaning. Does not know files, the index or the API server.
"""
