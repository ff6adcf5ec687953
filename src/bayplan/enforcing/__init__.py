"""What holds while workloads run: broken rules and who must go, moves that mend soft rules, what exclusivity costs."""
