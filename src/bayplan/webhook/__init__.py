"""
The door of a cluster: admission reviews over TLS, answered by the rules of `bayplan validate`. Has no rule of its own.

`serving` speaks HTTP, `judging` answers one review, `rotation` looks after the certificates, `manifests` says what an
API server has to be told.
"""
