"""Rules during execution: violations and evictions, moves that improve soft rules, and what exclusive pods cost."""
