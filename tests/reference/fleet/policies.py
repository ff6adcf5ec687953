"""The policy of a template by reading every policy."""

from bayplan.controllers import binding_detector


def policy_for(template, policies):
    alive = [policy for policy in policies if policy.metadata.deletion_timestamp is None]
    claimed = binding_detector.claimed_by(template.metadata)
    if claimed is not None:
        found = next((p for p in alive if (p.metadata.namespace, p.metadata.name) == claimed), None)
        return found if found is not None and binding_detector.explicitness(template, found) else None
    namespace = template.metadata.namespace
    own = [policy for policy in alive if namespace and policy.metadata.namespace == namespace]
    return best(template, own) or best(template, [policy for policy in alive if not policy.metadata.namespace])


def best(template, policies):
    fitting = [(policy, binding_detector.explicitness(template, policy)) for policy in policies]
    ranked = [(-(policy.spec.priority or 0), -how, policy.metadata.name, policy) for policy, how in fitting if how]
    return min(ranked, key=lambda entry: entry[:3])[3] if ranked else None
