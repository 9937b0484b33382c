import torch

from cdclust.engine.order import batches, generator, mix


def rows(epoch: int, seed: int = 0, n: int = 50, size: int = 16) -> list[list[int]]:
    return [batch.tolist() for batch in batches(n, size, seed, epoch)]


def test_batches_are_full_and_no_image_comes_twice_in_an_epoch():
    found = rows(epoch=0)
    assert [len(batch) for batch in found] == [16, 16, 16]
    seen = [row for batch in found for row in batch]
    assert len(set(seen)) == 48
    assert set(seen) <= set(range(50))


def test_every_epoch_has_another_order():
    assert len({str(rows(epoch)) for epoch in range(20)}) == 20


def test_over_the_epochs_every_image_is_seen():
    assert {row for epoch in range(20) for batch in rows(epoch) for row in batch} == set(range(50))


def test_the_same_seed_gives_the_same_order_whatever_else_was_drawn():
    first = rows(epoch=3)
    torch.manual_seed(99)
    torch.rand(5)
    assert rows(epoch=3) == first


def test_another_seed_gives_another_order():
    assert rows(0, seed=1) != rows(0, seed=2)


def test_a_batch_as_large_as_the_data_is_one_batch():
    assert [len(batch) for batch in rows(0, n=16)] == [16]


def test_mixed_seeds_differ_and_fit_a_generator():
    seeds = {mix(a, name, b) for a in range(10) for b in range(10) for name in ("order", "views", "step")}
    assert len(seeds) == 300
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_mixed_seeds_stay_what_they_were():
    assert mix(0, "order", 0) == 2094333682667709378  # with another number no old run could be repeated


def test_a_generator_draws_apart_from_torchs_own():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    torch.rand(100, generator=generator(1, "views", 2))
    assert torch.equal(torch.rand(3), expected)
