import numpy as np
import pytest
import torch
from scipy.special import xlogy
from sklearn.metrics import adjusted_rand_score

from cdclust.objectives import balanced_codes, directions


def blobs(per_cluster: int = 30, clusters: int = 5, noise: float = 0.15) -> tuple[torch.Tensor, np.ndarray]:
    """Directions around `clusters` orthogonal axes, off the origin, and which axis each is of."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(clusters).repeat_interleave(per_cluster)
    axes = torch.eye(8)[labels]
    return axes + noise * torch.randn(len(labels), 8, generator=generator) + 3.0, labels.numpy()


def codes_of(features: torch.Tensor, starts: int = 10, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    return balanced_codes(features, 5, 0.05, starts, torch.Generator().manual_seed(seed))


def test_planted_clusters_are_found():
    features, labels = blobs()
    codes, _ = codes_of(features)
    assert adjusted_rand_score(labels, codes.argmax(dim=1).numpy()) == 1.0


def test_the_codes_are_even():
    codes, _ = codes_of(torch.randn(200, 8, generator=torch.Generator().manual_seed(3)))
    torch.testing.assert_close(codes.sum(dim=0), torch.full((5,), 40.0), rtol=0.05, atol=0)


def test_the_start_with_the_largest_value_of_equation_5_wins():
    features, _ = blobs(noise=0.6)
    codes, values = codes_of(features, starts=6)
    unit = torch.nn.functional.normalize(features - features.mean(dim=0), dim=1)
    alone = [codes_of_one_start(features, number) for number in range(6)]
    assert len(set(values.tolist())) > 1, "all starts ended alike: this shows nothing"
    np.testing.assert_allclose(values.numpy(), [value for _, value in alone], rtol=1e-4)
    torch.testing.assert_close(codes, alone[int(values.argmax())][0])
    assert len(unit) == len(codes)


def codes_of_one_start(features: torch.Tensor, number: int) -> tuple[torch.Tensor, float]:
    """The start by itself, and its value computed in NumPy: the generator is first moved past those before it."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(number):
        balanced_codes(features, 5, 0.05, 1, generator)
    codes, value = balanced_codes(features, 5, 0.05, 1, generator)
    return codes, float(value[0])


def test_the_value_is_that_of_equation_5_at_the_codes_own_directions():
    features, _ = blobs(noise=0.02)  # so tight that one more turn moves neither codes nor directions
    codes, values = codes_of(features)
    q = codes.double().numpy()
    x = features.double().numpy() - features.double().numpy().mean(0)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    centres = q.T @ x
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    expected = ((q * (x @ centres.T)).sum() - 0.05 * xlogy(q, q).sum()) / len(q)
    assert values.max().item() == pytest.approx(expected, abs=1e-4)


def test_a_layer_of_those_directions_assigns_as_the_codes_do():
    features, _ = blobs()
    codes, _ = codes_of(features)
    weight, bias = directions(features, codes)
    torch.testing.assert_close(weight.norm(dim=1), torch.ones(5))
    assert ((features @ weight.T + bias).argmax(dim=1) == codes.argmax(dim=1)).all()


def test_the_same_generator_gives_the_same_codes():
    features, _ = blobs(noise=0.6)
    torch.testing.assert_close(codes_of(features)[0], codes_of(features)[0], rtol=0, atol=0)
