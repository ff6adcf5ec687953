"""
Text and dumps, read into objects and loaded as a cluster or a fleet.

    files → yaml_dumps, yaml_documents, json_documents → collecting (checking) → cluster, fleet

`files.load` returns typed objects, `cluster` and `fleet` put them into an index. `questions` and the `audit_` modules
read other inputs: the questions of `decide`, and what an audit needs. Does not know what a rule decides.
"""
