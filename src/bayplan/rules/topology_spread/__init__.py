"""PodTopologySpread: keep the number of matching pods even over the domains of a topology key."""

from bayplan.rules.topology_spread.rule import SYSTEM_DEFAULTS, TopologySpread
from bayplan.rules.topology_spread.state import CountedConstraint, SpreadState

__all__ = ["SYSTEM_DEFAULTS", "CountedConstraint", "SpreadState", "TopologySpread"]
