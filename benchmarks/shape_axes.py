"""
Shapes: frozen values of axes, each axis with the levels that a search chooses from. Does not know what a level means.

A shape is written as `key=value` words; axes that are left out have their default, the first level.
"""

import dataclasses


class Shape:
    """
    A frozen dataclass whose fields are axes; `axis` declares one.

    `same_rules`: the real code reads all rules of the input, so it places about as many workloads as Bayplan.
    """

    same_rules = True

    @classmethod
    def axes(cls):
        """The levels of each axis by its name."""
        return {field.name: field.metadata["levels"] for field in dataclasses.fields(cls)}

    @classmethod
    def read(cls, words):
        """The shape that these words describe; ValueError for an unknown axis or level."""
        axes, chosen = cls.axes(), {}
        for word in words:
            name, _, text = word.partition("=")
            levels = {str(level): level for level in axes.get(name, ())}
            if text not in levels:
                known = f"one of {', '.join(levels)}" if levels else f"an axis of {', '.join(axes)}"
                raise ValueError(f"{word}: expected {known}")
            chosen[name] = levels[text]
        return cls(**chosen)

    @classmethod
    def random(cls, chance):
        """A random shape; half of its axes have their default, so that it is unusual in some ways and not in all."""
        return cls(
            **{
                name: levels[0] if chance.random() < 0.5 else chance.choice(levels)
                for name, levels in cls.axes().items()
            }
        )

    def mutated(self, chance):
        """The shape with another level of one or two axes."""
        axes = self.axes()
        names = chance.sample(list(axes), chance.choice((1, 1, 2)))
        others = {name: chance.choice([one for one in axes[name] if one != getattr(self, name)]) for name in names}
        return dataclasses.replace(self, **others)

    def __str__(self):
        fields = dataclasses.fields(self)
        words = [f"{one.name}={getattr(self, one.name)}" for one in fields if getattr(self, one.name) != one.default]
        return " ".join(words)


def axis(*levels):
    return dataclasses.field(default=levels[0], metadata={"levels": levels})
