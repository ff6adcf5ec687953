"""Answers in the forms that people and machines read: model → text, JSON, YAML, HTML. Decides nothing."""
