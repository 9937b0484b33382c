import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, silhouette_score

from cdclust.evaluation.comparison import agreement, figures, markdown, silhouette, summed_up, table

CHANCE = np.random.default_rng(0)
ROWS = CHANCE.normal(size=(60, 5)).astype(np.float32)
CLUSTERS = CHANCE.integers(0, 3, 60)
SAMPLE = (np.arange(60), ROWS)


def row(seed: int, **more) -> dict:
    return {"seed": seed, "status": "ok", "features": "as they are", "remarks": [], "seconds": 1.0} | more


def test_agreement_is_the_mean_of_all_pairs():
    three = [CHANCE.integers(0, 3, 60) for _ in range(3)]
    pairs = [(0, 1), (0, 2), (1, 2)]
    expected = np.mean([adjusted_rand_score(three[a], three[b]) for a, b in pairs])
    assert agreement(three) == pytest.approx(expected)


def test_one_seed_agrees_with_nobody():
    assert agreement([CLUSTERS]) is None


def test_silhouette_is_scikit_learns_on_the_sample():
    half = np.arange(30)
    found = figures(CLUSTERS, 3, None, None, (half, ROWS[half]))
    assert found["silhouette"] == pytest.approx(silhouette_score(ROWS[half], CLUSTERS[half]), abs=1e-6)


def test_one_cluster_has_no_silhouette():
    assert silhouette(np.zeros(60, dtype=int), ROWS) is None


def test_without_labels_no_score_and_without_probabilities_no_confidence():
    found = figures(CLUSTERS, 3, None, None, SAMPLE)
    assert not {"acc", "nmi", "ari", "confidence"} & found.keys()


def test_figures_with_both_have_both():
    found = figures(CLUSTERS, 3, CLUSTERS, np.full(60, 0.75, dtype=np.float32), SAMPLE)
    assert (found["acc"], found["confidence"]) == (1, 0.75)


def test_a_method_that_finds_more_clusters_than_asked_is_counted_with_all():
    found = figures(np.arange(60) % 5, 3, None, None, SAMPLE)
    assert (found["n_found"], found["evenness"]) == (5, 1)


def test_seeds_are_summed_up_and_what_failed_has_its_reason():
    rows = [row(0, acc=0.5), row(1, acc=0.7), {"seed": 2, "status": "failed", "reason": "no memory"}]
    found = summed_up(rows, [CLUSTERS, CLUSTERS])
    spread = pytest.approx(np.std([0.5, 0.7], ddof=1))
    assert found["acc"] == {"mean": pytest.approx(0.6), "std": spread, "values": [0.5, 0.7]}
    assert found["failed"] == [{"seed": 2, "reason": "no memory"}]
    assert found["agreement"]["mean"] == 1


def test_the_table_leaves_out_what_nobody_has():
    heading, cells = table({"kmeans": summed_up([row(0, acc=0.5)], [])})
    assert heading == ["method", "ACC", "s"]
    assert cells == [["kmeans", "0.500", "1.0"]]


def test_a_method_that_only_failed_has_a_row_all_the_same():
    failed = summed_up([{"seed": 0, "status": "failed", "reason": "no memory"}], [])
    _, cells = table({"kmeans": summed_up([row(0)], []), "spectral": failed})
    assert cells[1] == ["spectral", "-"]


def test_hostile_names_cannot_leave_their_cell_in_markdown():
    text = markdown("a|b\n<script>`x`", {"kmeans": summed_up([row(0, remarks=["c|d\n# e"])], [])}, ["**bold** [x](y)"])
    assert text.splitlines()[0] == "# a\\|b \\<script\\>\\`x\\`"
    assert "- kmeans: c\\|d \\# e" in text
    assert "**bold**" not in text
