import math

import pytest
import torch

from cdclust.engine.watch import Diverged, Watch, warnings
from cdclust.methods import Losses

K = 4


def step(clusters: list[int], loss: float = 1.0, cross_entropy: float = 0.5, p: float = 0.7) -> Losses:
    """A step whose images are in these clusters, each with probability p."""
    probabilities = torch.full((len(clusters), K), (1 - p) / (K - 1))
    probabilities[torch.arange(len(clusters)), clusters] = p
    terms = {
        "info_nce": torch.tensor(2.0),
        "cross_entropy": torch.tensor(cross_entropy),
        "positive_n": torch.tensor(0.5),
    }
    return Losses(torch.tensor(loss), terms, probabilities)


def watched(*steps: Losses) -> Watch:
    watch = Watch(K)
    for each in steps:
        watch.add(each)
    return watch


def test_figures_are_means_over_the_steps():
    figures = watched(step([0, 1], loss=1.0, p=0.6), step([2, 3], loss=3.0, p=0.8)).figures()
    assert figures["loss"] == pytest.approx(2.0)
    assert figures["confidence"] == pytest.approx(0.7)


def test_cross_entropy_is_also_said_over_ln_k():
    figures = watched(step([0, 1], cross_entropy=0.25), step([2, 3], cross_entropy=0.75)).figures()
    assert figures["cross_entropy_over_ln_k"] == pytest.approx(0.5 / math.log(4))


def test_evenness_is_the_entropy_of_the_sizes_over_ln_k():
    figures = watched(step([0, 0, 0, 1]), step([0, 0, 1, 2])).figures()  # sizes 5, 2, 1, 0
    expected = -sum(n / 8 * math.log(n / 8) for n in (5, 2, 1)) / math.log(4)
    assert figures["size_entropy"] == pytest.approx(expected)
    assert figures["largest_share"] == pytest.approx(5 / 8)
    assert figures["nonempty_clusters"] == 3


def test_even_clusters_have_evenness_1_and_a_single_one_0():
    assert watched(step([0, 1, 2, 3])).figures()["size_entropy"] == pytest.approx(1)
    assert watched(step([2, 2, 2, 2])).figures()["size_entropy"] == pytest.approx(0)


def test_without_the_split_head_there_are_no_figures_of_clusters():
    watch = watched(Losses(torch.tensor(1.0), {"info_nce": torch.tensor(1.0), "positive_n": torch.tensor(0.5)}))
    assert watch.figures().keys() == {"loss", "info_nce", "positive_n"}


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_no_number_stops_the_run_in_words(bad):
    watch = watched(step([0]), step([1], loss=bad), step([2]))
    with pytest.raises(Diverged, match=r"diverged in epoch 3 \(step 17\): loss .*Lower optimizer\.lr") as error:
        watch.check(epoch=2, step=17)
    assert "\n" not in str(error.value)


def test_a_finite_loss_passes():
    watched(step([0, 1])).check(epoch=0, step=1)


def test_sums_go_on_where_they_were_saved():
    first, both = watched(step([0, 1])), watched(step([0, 1]), step([2, 2], loss=5.0))
    resumed = Watch(K)
    resumed.load_state_dict(first.state_dict())
    resumed.add(step([2, 2], loss=5.0))
    assert resumed.figures() == both.figures()


HEALTHY = {
    "info_nce": 2.0,
    "positive_n": 0.8,
    "largest_share": 0.15,
    "nonempty_clusters": 10,
}


def said(**changes: float) -> list[str]:
    return warnings(HEALTHY | changes, n_negatives=1000, n_clusters=10)


def test_a_healthy_epoch_is_not_warned_about():
    assert said() == []


@pytest.mark.parametrize("changes", [{"largest_share": 1.0, "nonempty_clusters": 1}, {"largest_share": 0.95}])
def test_a_collapse_into_one_cluster_is_said_with_what_to_try(changes):
    (sentence,) = said(**changes)
    assert "in one cluster" in sentence
    assert "objective.alpha" in sentence


def test_constant_features_are_said_with_what_to_try():
    (sentence,) = said(info_nce=math.log(1001), positive_n=0.999)
    assert "features are constant" in sentence
    assert "optimizer.lr" in sentence


def test_the_first_epochs_high_loss_is_no_plateau_while_views_differ():
    assert said(info_nce=math.log(1001), positive_n=0.3) == []


def test_dead_clusters_are_said():
    (sentence,) = said(nonempty_clusters=4)
    assert "only 4 of 10 clusters" in sentence


def test_clusters_are_not_warned_about_before_they_begin():
    collapsed = HEALTHY | {"nonempty_clusters": 1, "largest_share": 1.0}
    assert warnings(collapsed, 1000, 10, pretext=True) == []
    assert len(warnings(collapsed, 1000, 10, pretext=False)) == 1


def test_two_uneven_clusters_are_no_collapse_but_one_of_two_is():
    figures = HEALTHY | {"nonempty_clusters": 2, "largest_share": 0.95}
    assert warnings(figures, 1000, 2) == []
    assert len(warnings(figures | {"nonempty_clusters": 1, "largest_share": 1.0}, 1000, 2)) == 1


def test_a_plain_method_can_be_warned_about_too():
    plain = {"info_nce": math.log(1001), "positive_n": 0.999}
    assert len(warnings(plain, 1000, 10)) == 1
