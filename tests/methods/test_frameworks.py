"""What sets the frameworks apart: twin, queue, directions, batch statistics."""

import math

import pytest
import torch

from cdclust.methods import build_method
from cdclust.objectives import info_nce, info_nce_across_batch, info_nce_within_batch, normalise_halves
from oracles import equations

K, B, TAU = 4, 8, 0.15
X_1, X_2 = VIEWS = tuple(torch.randn(2, B, 3, 12, 12, generator=torch.Generator().manual_seed(0)))


@pytest.fixture
def method(small):
    return lambda framework, **changes: build_method(small({"method.framework": framework, **changes}), 3, 12)


def halves(network, images) -> torch.Tensor:
    with torch.no_grad():
        return normalise_halves(network(images), K)


def test_the_queue_contrast_is_equation_2_on_the_same_vectors(method):
    m = method("moco-v2", split_batch_norm=1)
    with torch.no_grad():
        z_q, z_k = m.encoder(X_1).double().numpy(), m.twin(X_2).double().numpy()
    expected = []
    for q, k in zip(z_q, z_k, strict=True):
        c_pos, c, n_pos, n = equations.similarities(q, k, m.queue.vectors.double().numpy(), K)
        expected.append(equations.equation_2(c_pos + n_pos, c + n, TAU))
    assert m.step(VIEWS).terms["info_nce"].item() == pytest.approx(sum(expected) / B, rel=1e-5)


def test_keys_enter_the_queue_after_the_step_and_not_before(method):
    m = method("moco-v2", split_batch_norm=1)
    keys, before = halves(m.twin, X_2), m.queue.vectors.clone()
    m.step(VIEWS)
    assert torch.equal(m.queue.vectors, before)
    m.after_step()
    torch.testing.assert_close(m.queue.vectors[:B], keys)
    assert torch.equal(m.queue.vectors[B:], before[B:])


def test_the_symmetric_queue_takes_the_keys_of_both_directions(method):
    m = method("moco-v2", symmetric=True)
    m.step(VIEWS)
    m.after_step()
    assert int(m.queue.seen) == 2 * B


@pytest.mark.parametrize("framework", ["moco-v2", "moco-v3"])
def test_symmetric_is_the_mean_of_both_directions(method, framework):
    m = method(framework, symmetric=True, split_batch_norm=1)
    one_way = method(framework, symmetric=False, split_batch_norm=1)
    one_way.load_state_dict(m.state_dict())
    there, back, both = one_way.step((X_1, X_2)), one_way.step((X_2, X_1)), m.step((X_1, X_2))
    torch.testing.assert_close(both.total, (there.total + back.total) / 2)
    for name, value in both.terms.items():
        torch.testing.assert_close(value, (there.terms[name] + back.terms[name]) / 2)


@pytest.mark.parametrize(("framework", "both"), [("moco-v2", False), ("moco-v3", True)])
def test_unless_said_otherwise_only_moco_v3_goes_both_ways(method, framework, both):
    m, calls = method(framework), []
    m.twin.register_forward_hook(lambda module, inputs, out: calls.append(len(inputs[0])))
    m.step(VIEWS)
    assert sum(calls) == (2 if both else 1) * B


def test_simclr_contrasts_both_views_of_one_batch(method):
    m = method("simclr")
    q, k = halves(m.encoder, torch.cat(VIEWS)).chunk(2)
    torch.testing.assert_close(m.step(VIEWS).terms["info_nce"], info_nce_within_batch(q, k, TAU))


def test_moco_v3_contrasts_the_predictor_with_the_twin(method):
    m = method("moco-v3", symmetric=False)
    q, k = halves(lambda x: m.predictor(m.encoder(x)), X_1), halves(m.twin, X_2)
    torch.testing.assert_close(m.step(VIEWS).terms["info_nce"], info_nce_across_batch(q, k, TAU))


def moved(m) -> list[torch.Tensor]:
    """The encoder's weights after a change of 1 everywhere, while the twin stayed."""
    with torch.no_grad():
        for p in m.encoder.parameters():
            p += 1
    return list(m.encoder.parameters())


@pytest.mark.parametrize("framework", ["moco-v2", "moco-v3"])
def test_the_twin_follows_the_encoder_by_the_recipes_momentum(method, framework):
    m = method(framework, **{"method.momentum": 0.9})
    old = [p.clone() for p in m.twin.parameters()]
    now = moved(m)
    m.after_step()
    for copy, was, new in zip(m.twin.parameters(), old, now, strict=True):
        torch.testing.assert_close(copy, 0.9 * was + 0.1 * new)


@pytest.mark.parametrize(("progress", "momentum"), [(0.0, 0.9), (0.5, 0.95), (1.0, 1.0)])
def test_the_momentum_rises_to_one_by_a_half_cosine(method, progress, momentum):
    m = method("moco-v3", momentum_to_one=True, **{"method.momentum": 0.9})
    m.progress = progress
    old = [p.clone() for p in m.twin.parameters()]
    now = moved(m)
    m.after_step()
    for copy, was, new in zip(m.twin.parameters(), old, now, strict=True):
        torch.testing.assert_close(copy, momentum * was + (1 - momentum) * new)


def companies(m, networks: dict[str, torch.nn.Module]) -> dict[str, list[frozenset[int]]]:
    """The images that share each branch's batch statistics in a step; an image is known by its first pixel."""
    seen = {name: [] for name in networks}
    for name, network in networks.items():
        network.register_forward_pre_hook(
            lambda module, inputs, name=name: seen[name].append(frozenset(map(int, inputs[0][:, 0, 0, 0])))
        )
    numbered = torch.arange(32.0)[:, None, None, None].expand(-1, 3, 12, 12).contiguous()
    m.step((numbered, numbered))
    return seen


def test_a_query_and_its_key_do_not_share_their_statistics_company(method):
    m = method("moco-v2", split_batch_norm=4, **{"training.batch_size": 64})
    seen = companies(m, {"q": m.encoder.backbone, "k": m.twin.network.backbone})
    assert [len(part) for part in seen["q"]] == [len(part) for part in seen["k"]] == [8] * 4
    assert frozenset.union(*seen["q"]) == frozenset.union(*seen["k"]) == frozenset(range(32))
    assert not set(seen["q"]) & set(seen["k"])
    # By chance 8 / 32 of a query's company meets it again beside the key; in the same order it would be all of it.
    shared = max(len(q & k) for q in seen["q"] for k in seen["k"])
    assert shared < 8


def test_a_small_batch_has_fewer_parts_of_at_least_sixteen_images(method):
    m, sizes = method("moco-v2", split_batch_norm=8, **{"training.batch_size": 32}), []
    m.encoder.backbone.register_forward_pre_hook(lambda module, inputs: sizes.append(len(inputs[0])))
    m.step((X_1.repeat(4, 1, 1, 1), X_2.repeat(4, 1, 1, 1)))
    assert sizes == [16, 16]


def test_running_statistics_move_as_far_in_parts_as_in_one(method):
    one, parts = (method("moco-v2", split_batch_norm=n, **{"training.batch_size": 64}) for n in (1, 4))
    parts.encoder.load_state_dict(one.encoder.state_dict())
    same = X_1[:1].repeat(32, 1, 1, 1)  # every part has the same statistics
    for m in (one, parts):
        m.step((same, same))
    torch.testing.assert_close(
        parts.encoder.backbone.bn1.running_mean, one.encoder.backbone.bn1.running_mean, rtol=1e-4, atol=1e-6
    )


def test_a_batch_that_its_parts_do_not_divide_trains_with_normalisation_in_the_head(method):
    m = method("moco-v2", split_batch_norm=4, **{"head.batch_norm": True, "training.batch_size": 64})
    images = torch.randn(2, 13, 3, 12, 12)
    assert math.isfinite(m.step((images[0], images[1])).total.item())


def test_keys_and_queue_have_no_gradient(method):
    m = method("moco-v2")
    m.step(VIEWS).total.backward()
    m.after_step()
    assert not m.queue.vectors.requires_grad


def test_info_nce_of_the_objectives_is_what_moco_minimises(method):
    m = method("moco-v2", split_batch_norm=1)
    q, k = halves(m.encoder, X_1), halves(m.twin, X_2)
    torch.testing.assert_close(m.step(VIEWS).terms["info_nce"], info_nce(q, k, m.queue.vectors, TAU))
