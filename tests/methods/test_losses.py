"""What every framework promises of a step: its terms, its sum, and where gradients go."""

import math

import numpy as np
import pytest
import torch

from cdclust.methods import FRAMEWORKS, build_method
from cdclust.objectives import sinkhorn, swapped_cross_entropy
from oracles.equations import equation_6, sinkhorn_as_written

K, B = 4, 8
VIEWS = tuple(torch.randn(2, B, 3, 12, 12, generator=torch.Generator().manual_seed(0)))
both_heads = pytest.mark.parametrize("split", [True, False], ids=["split head", "plain"])
all_frameworks = pytest.mark.parametrize("framework", FRAMEWORKS)


@pytest.fixture
def method(small):
    return lambda framework="simclr", **changes: build_method(small({"method.framework": framework, **changes}), 3, 12)


@all_frameworks
@both_heads
def test_a_step_gives_finite_named_terms_without_gradient(method, framework, split):
    losses = method(framework, split=split).step(VIEWS)
    expected = {"info_nce", "positive_n"} | ({"cross_entropy", "positive_c"} if split else set())
    assert losses.terms.keys() == expected
    assert all(torch.isfinite(value) and not value.requires_grad and value.ndim == 0 for value in losses.terms.values())
    assert torch.isfinite(losses.total)


@all_frameworks
@both_heads
@pytest.mark.parametrize("symmetric", [True, False])
def test_gradients_reach_every_weight_that_is_trained_and_never_the_twin(method, framework, split, symmetric):
    m = method(framework, split=split, symmetric=symmetric)
    m.step(VIEWS).total.backward()
    for name, parameter in m.named_parameters():
        if name.startswith("twin."):
            assert parameter.grad is None, name
        else:
            assert parameter.grad is not None, name
            assert parameter.grad.abs().max() > 0, name


@all_frameworks
def test_the_total_is_equation_8(method, framework):
    losses = method(framework, alpha=3.0).step(VIEWS)
    terms = losses.terms
    assert losses.total.item() == pytest.approx((terms["info_nce"] + 3.0 * terms["cross_entropy"]).item(), rel=1e-6)


@all_frameworks
def test_the_plain_method_minimises_its_contrast_alone(method, framework):
    losses = method(framework, split=False).step(VIEWS)
    assert losses.total.item() == losses.terms["info_nce"].item()
    assert losses.probabilities is None


@pytest.mark.parametrize(("progress", "alpha"), [(0.0, 0.0), (0.1, 2.0), (0.25, 5.0), (0.9, 5.0)])
def test_alpha_rises_over_its_share_of_training(method, progress, alpha):
    m = method(**{"objective.alpha_warmup": 0.25})
    m.progress = progress
    assert m.alpha == pytest.approx(alpha)
    losses = m.step(VIEWS)
    terms = losses.terms
    assert losses.total.item() == pytest.approx((terms["info_nce"] + alpha * terms["cross_entropy"]).item(), rel=1e-6)


def test_without_warmup_alpha_is_whole_from_the_first_step(method):
    assert method().alpha == 5.0


def z_of(m, images: torch.Tensor) -> torch.Tensor:
    """z_c and z_n of images with each half normalised, in train mode, as one batch."""
    with torch.no_grad():
        z = m.encoder(images)
    return torch.cat([z[:, :K] / z[:, :K].norm(dim=1, keepdim=True), z[:, K:] / z[:, K:].norm(dim=1, keepdim=True)], 1)


def z_c_of(m) -> list[torch.Tensor]:
    return list(z_of(m, torch.cat(VIEWS))[:, :K].chunk(2))


@pytest.mark.parametrize(
    ("changes", "factor", "clusters"),
    [({}, 1, 1), ({"sinkhorn_input": "scaled", "t": 0.2}, 0.2, 1), ({"cross_entropy": "mean"}, 1, K)],
    ids=["default", "sinkhorn on z_c / t", "mean over clusters"],
)
def test_the_constraint_is_equations_5_and_6_as_the_recipe_reads_them(method, changes, factor, clusters):
    m = method(**changes)
    z_q, z_k = (z.double().numpy() for z in z_c_of(m))
    codes = [sinkhorn_as_written(z / factor, 0.05, 3) for z in (z_q, z_k)]
    expected = equation_6(z_q, z_k, *codes, t=changes.get("t", 0.1)) / clusters
    assert m.step(VIEWS).terms["cross_entropy"].item() == pytest.approx(expected, rel=1e-4)


def test_without_normalisation_z_c_goes_into_everything_as_it_is(method):
    m = method(normalise_z_c=False)
    with torch.no_grad():
        z_c = m.encoder(torch.cat(VIEWS))[:, :K]
    q, k = z_c.chunk(2)
    codes = sinkhorn(q, 0.05, 3, "log"), sinkhorn(k, 0.05, 3, "log")
    expected = swapped_cross_entropy(q, k, *codes, 0.1)
    torch.testing.assert_close(m.step(VIEWS).terms["cross_entropy"], expected)


def test_without_info_nce_the_constraint_alone_moves_the_weights(method):
    m = method(info_nce=False)
    losses = m.step(VIEWS)
    losses.total.backward()
    last = m.encoder.head[-1].weight.grad  # (K + C, hidden): a row an output
    assert last[:K].abs().max() > 0
    assert last[K:].abs().max() == 0
    assert losses.terms["info_nce"] > 0  # it is still said


@all_frameworks
def test_the_probabilities_of_a_step_are_softmax_of_z_c_over_t(method, framework):
    p = method(framework).step(VIEWS).probabilities
    assert p.shape == (B, K)
    torch.testing.assert_close(p.sum(dim=1), torch.ones(B))
    assert not p.requires_grad


def test_recent_z_c_join_sinkhorn_once_the_queue_is_full(method):
    m = method(**{"objective.sinkhorn_queue": 2 * B})
    z_c = torch.nn.functional.normalize(torch.randn(B, K), dim=1)
    alone = sinkhorn_as_written(z_c.double().numpy(), 0.05, 3)
    np.testing.assert_allclose(m.codes(z_c).numpy(), alone, atol=1e-5)
    for _ in range(2):
        m.step(VIEWS)
    everything = torch.cat([z_c, m.recent.vectors])
    joined = sinkhorn_as_written(everything.double().numpy(), 0.05, 3)[:B]
    np.testing.assert_allclose(m.codes(z_c).numpy(), joined, atol=1e-5)
    assert np.abs(joined - alone).max() > 1e-3


@all_frameworks
def test_assignment_is_softmax_of_normalised_z_c_over_t_in_eval_mode(method, framework):
    m = method(framework, t=0.2).eval()
    found = m.assign(VIEWS[0])
    with torch.no_grad():
        z_c = m.query(VIEWS[0])[:, :K]
        features = m.encoder.backbone(VIEWS[0])
    torch.testing.assert_close(found.probabilities, torch.softmax(z_c / z_c.norm(dim=1, keepdim=True) / 0.2, dim=1))
    torch.testing.assert_close(found.probabilities.sum(dim=1), torch.ones(B))
    torch.testing.assert_close(found.features, features)
    torch.testing.assert_close(m.embed(VIEWS[0]), features)


def test_a_plain_method_assigns_to_the_nearest_centroid(method):
    m = method(split=False).eval()
    features = m.embed(VIEWS[0])
    m.centroids.copy_(features[[0, 2, 4, 6]] * 3)  # how long they are does not matter
    p = m.assign(VIEWS[0]).probabilities
    assert p.argmax(dim=1)[[0, 2, 4, 6]].tolist() == [0, 1, 2, 3]
    torch.testing.assert_close(p.sum(dim=1), torch.ones(B))


def test_each_framework_says_how_many_negatives_it_has(method):
    found = {name: method(name).n_negatives(B) for name in FRAMEWORKS}
    assert found == {"moco-v2": 40, "simclr": 2 * B - 2, "moco-v3": B - 1}


@all_frameworks
def test_constant_features_stand_at_ln_1_plus_the_negatives_it_says(method, framework):
    m = method(framework, split=False)
    m.represent = lambda network, images: torch.ones(len(images), 8) / math.sqrt(8)
    if framework == "moco-v2":
        m.queue.vectors.fill_(1 / math.sqrt(8))
    assert m.step(VIEWS).terms["info_nce"].item() == pytest.approx(math.log(1 + m.n_negatives(B)), rel=1e-5)


@all_frameworks
def test_networks_run_in_the_precision_asked_for_and_losses_in_float32(method, framework):
    m = method(framework)
    m.autocast = torch.bfloat16
    seen = []
    m.encoder.backbone.register_forward_hook(lambda module, inputs, out: seen.append(out.dtype))
    losses = m.step(VIEWS)
    assert set(seen) == {torch.bfloat16}
    assert losses.total.dtype == torch.float32
