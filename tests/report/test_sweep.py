import numpy as np
import pytest

from cdclust.report.sweep import sweep


def runs(**fields):
    """One settings mapping a run, from a list of values a field."""
    n = len(next(iter(fields.values())))
    return [{"objective.alpha": 5.0, "views.policy": "cifar"} | {k: v[i] for k, v in fields.items()} for i in range(n)]


def test_runs_over_one_setting_make_a_line_in_its_order():
    found = sweep(runs(t=[0.5, 0.1, 0.2]), [0.3, 0.9, 0.6])
    assert (found.setting, found.second) == ("t", None)
    assert [(value, mean) for value, mean, _ in found.lines[None]] == [(0.1, 0.9), (0.2, 0.6), (0.5, 0.3)]


def test_seeds_of_a_setting_are_a_mean_and_the_deviation_of_a_sample():
    found = sweep(runs(t=[0.1, 0.1, 0.2], seed=[0, 1, 0]), [0.8, 0.6, 0.5])
    (_, mean, deviation), (_, alone, none) = found.lines[None]
    assert mean == pytest.approx(0.7)
    assert deviation == pytest.approx(np.std([0.8, 0.6], ddof=1))
    assert (alone, none) == (0.5, 0.0)


def test_of_two_settings_the_one_with_more_values_runs_along_the_axis():
    found = sweep(runs(tau=[0.1, 0.1, 0.1, 0.2, 0.2, 0.2], t=[1, 2, 3, 1, 2, 3]), [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert (found.setting, found.second) == ("t", "tau")
    assert [[mean for _, mean, _ in line] for line in found.lines.values()] == [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]


@pytest.mark.parametrize(
    ("fields", "accuracies"),
    [
        ({"t": [0.1, 0.2]}, [0.5, None]),
        ({"seed": [0, 1]}, [0.5, 0.6]),
        ({"views.policy": ["cifar", "strong"]}, [0.5, 0.6]),
        ({"head.split": [True, False]}, [0.5, 0.6]),
        ({"a": [1, 2], "b": [1, 2], "c": [1, 2]}, [0.5, 0.6]),
    ],
    ids=["no labels", "seeds alone", "words", "yes or no", "three settings"],
)
def test_what_is_no_sweep_makes_none(fields, accuracies):
    assert sweep(runs(**fields), accuracies) is None
