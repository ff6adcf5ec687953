"""PodTopologySpread: keep the number of matching pods even over the domains of a topology key."""

from bayplan.rules.topology_spread.arguments import TopologySpreadArguments
from bayplan.rules.topology_spread.rule import TopologySpread
from bayplan.rules.topology_spread.state import CountedConstraint, SpreadState

__all__ = ["CountedConstraint", "SpreadState", "TopologySpread", "TopologySpreadArguments"]
