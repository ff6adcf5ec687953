"""
The admission webhook: AdmissionReview requests over TLS, answered by the rules of `bayplan validate`.

- `serving` is the HTTP server, `reviews` the wire format, `admission_handler` answers one review.
- `reviewers` check binds and quota against the state of the cluster.
- `certificates` creates and rotates certificates; `in_cluster` stores them in a Secret.
- `manifests` has the webhook configurations for an API server; `running` puts all of it together.

It has no rules of its own.
"""
