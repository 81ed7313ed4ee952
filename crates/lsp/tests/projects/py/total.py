from collections.abc import Sequence

from shape import Shape


def total(shapes: Sequence[Shape]) -> int:
    """Adds areas up."""
    return sum(shape.area() for shape in shapes)
