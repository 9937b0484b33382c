"""The paper's ablation in small: what the equipartition constraint is for."""

import pytest

from cdclust import recipe as recipes
from cdclust.engine.compute import resolve_compute
from cdclust.jobs.fit import fit
from cdclust.jobs.listeners import Silent

EPOCHS = 8  # of 40, where the gap is 0.58; here it was 0.36 with seed 0


@pytest.mark.slow
def test_without_the_constraint_the_digits_fall_into_few_clusters(tmp_path):
    def accuracy(name: str, **changes: object) -> float:
        settings = recipes.load("digits").changed({"epochs": EPOCHS, "evaluate_every": EPOCHS, **changes})
        run = fit("digits", settings, tmp_path / name, resolve_compute("cpu"), listener=Silent())
        return float(run.metrics()["acc"])

    assert accuracy("with") - accuracy("without", alpha=0, pretext=0) > 0.2
