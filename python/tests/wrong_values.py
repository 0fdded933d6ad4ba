"""Numbers that arguments refuse, by the kind of the argument: for test_values.py here and in pytorch/."""

import inspect
import math
from fractions import Fraction

import numpy

# Kinds of arguments. Others are not numbers.
COUNT, FROM_0, NUMBER, ANY_NUMBER, FLAG, AXES, AXES_FROM_0, OTHER = (
    "count", "count from 0", "number but 0", "number", "flag", "axes", "axes from 0", "other")

NO_INTEGER = [True, numpy.True_, 2.0, 2.5, numpy.float64(2), math.nan, math.inf, "2", [[2]], {2: 2}, Fraction(2)]
NO_NUMBER = [True, numpy.True_, math.nan, math.inf, -math.inf, numpy.float32("nan"), 10 ** 400, "1", 1j, [[1.0]], {}]
WRONG = {
    COUNT: [0, numpy.int64(0), -1, numpy.int32(-1), 2 ** 31, 10 ** 30, *NO_INTEGER],
    FROM_0: [-1, numpy.int32(-1), 2 ** 64, *NO_INTEGER],
    NUMBER: [0, 0.0, -0.0, numpy.float64(0), *NO_NUMBER],
    ANY_NUMBER: NO_NUMBER,
    FLAG: [2, -1, 0.0, 1.0, math.nan, "no", [], [[1]], None],
    AXES: [0, -1, 2.0, True, math.nan, None, "3", [3, 0, 3], [3, 3, -1], [3, 3], [3, 3, 3.0], [3, 3, None], 2 ** 31],
    AXES_FROM_0: [-1, 2.0, True, math.nan, None, "3", [0, -1, 0], [0, 0], [0, 0, 0.0], 2 ** 31],
}


def arguments_of(call):
    """The names of what a call takes."""
    return [name for name in inspect.signature(call).parameters if name != "self"]


def check_arguments(case, name, call, kinds, more=(), error=Exception):
    """Each argument of a call, which works without any, refuses each wrong number by an `error`, which is a ValueError or
    TypeError and names the argument.

    kinds   of arguments by name; with the name in messages, where it has another one there
    more    wrong numbers by kind, besides WRONG
    """
    call()
    for argument, kind in kinds.items():
        kind, *shown = kind if isinstance(kind, tuple) else (kind, argument)
        for value in [*WRONG.get(kind, []), *dict(more).get(kind, [])]:
            with case.subTest(call=name, argument=argument, value=value):
                with case.assertRaises(error) as caught:
                    call(**{argument: value})
                case.assertIsInstance(caught.exception, (ValueError, TypeError))
                case.assertTrue(any(word in str(caught.exception) for word in shown), str(caught.exception))
