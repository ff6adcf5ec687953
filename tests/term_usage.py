"""What terms in use have in common, as a test says."""


class ChosenUsage:
    """What `is_common` says is common, one by one or, where `is_together` says so, together."""

    def __init__(self, is_common, is_together=lambda _: False):
        self.is_common, self.is_together = is_common, is_together

    def common_groups(self, key, values):
        common = tuple(value for value in values if self.is_common((key, value)))
        return (common,) if common and self.is_together(common) else tuple((value,) for value in common)
