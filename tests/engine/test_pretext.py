import pytest
import torch

from cdclust.engine.checkpoint import Checkpoints
from cdclust.engine.compute import resolve_compute
from cdclust.engine.feed import ImageFeed
from cdclust.engine.interrupt import Interrupted, StopFlag
from cdclust.engine.seeding import seed_clusters
from cdclust.engine.train import Trainer
from cdclust.jobs.listeners import Silent
from cdclust.jobs.setup import build_network, build_views

COMPUTE = resolve_compute("cpu", "fp32")
FRAMEWORKS = pytest.mark.parametrize("framework", ["moco-v2", "simclr", "moco-v3"])


class StopAt(Silent):
    def __init__(self, step: int) -> None:
        self.step, self.flag = step, StopFlag()

    def on_step(self, step, images_per_second):
        self.flag.set = step == self.step


@pytest.fixture
def images(pictures):
    return torch.from_numpy(pictures).permute(0, 3, 1, 2).contiguous()


@pytest.fixture
def trainer(small, images, tmp_path):
    def build(framework="simclr", stop=None, folder="run", **changes) -> Trainer:
        recipe = small({"framework": framework, "epochs": 4, "pretext": 0.5, "sinkhorn_queue": 20, **changes})
        (tmp_path / folder).mkdir(exist_ok=True)
        checkpoints = Checkpoints(tmp_path / folder / "checkpoint.pt", "mine", 1e9)
        method = build_network(recipe)
        feed = ImageFeed(images, build_views(recipe), COMPUTE, recipe.training.channels_last)
        return Trainer(method, feed, recipe, COMPUTE, stop or Silent(), checkpoints)

    return build


def seeded(trainer: Trainer, images: torch.Tensor):
    chance = torch.Generator().manual_seed(0)
    seed_clusters(trainer.method, trainer.feed, trainer.optimizer, chance)
    return trainer.method


@FRAMEWORKS
def test_all_branches_then_assign_evenly_and_alike(trainer, images, framework):
    method = seeded(trainer(framework), images).eval()
    views = build_views(trainer(framework).recipe)
    clean = views.clean(images)
    by_layer = []
    for layers, entering in zip(method.z_c_layers(), method.before_z_c(clean), strict=True):
        for layer in layers:
            by_layer.append(layer(entering)[:, : method.n_logits].argmax(dim=1))
    sizes = torch.bincount(by_layer[0], minlength=4)
    assert sizes.min() >= 6, f"48 images of noise in 4 clusters are shared {sizes.tolist()}"
    for other in by_layer[1:]:
        assert (other == by_layer[0]).float().mean() > 0.8


@FRAMEWORKS
def test_z_n_is_left_alone(trainer, images, framework):
    before = [layer.weight[4:].clone() for layers in trainer(framework).method.z_c_layers() for layer in layers]
    method = seeded(trainer(framework), images)
    after = [layer.weight[4:] for layers in method.z_c_layers() for layer in layers]
    for a, b in zip(before, after, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


def test_the_momentum_of_z_c_starts_anew_and_adams_scale_stays(trainer, images):
    run = trainer(name="adamw")
    run.train()
    weight = run.method.z_c_layers()[0][0].weight
    scale = run.optimizer.state[weight]["exp_avg_sq"].clone()
    seeded(run, images)
    moments = run.optimizer.state[weight]
    assert moments["exp_avg"][:4].abs().max() == 0
    assert moments["exp_avg"][4:].abs().max() > 0
    torch.testing.assert_close(moments["exp_avg_sq"], scale, rtol=0, atol=0)


def test_the_constraint_is_off_before_and_on_after(trainer):
    method = trainer().method
    method.progress = 0.49
    assert method.alpha == 0
    method.progress = 0.5
    assert method.alpha == 5.0


@pytest.mark.parametrize("step", [5, 6, 7])
def test_a_run_stopped_around_the_seeding_ends_as_one_that_was_not(trainer, step):
    whole = trainer(folder="whole")
    whole.train()
    assert whole.seeding_step == 6
    stop = StopAt(step)
    with pytest.raises(Interrupted):
        trainer(stop=stop).train(stop.flag)
    resumed = trainer()
    resumed.train()
    a, b = whole.method.state_dict(), resumed.method.state_dict()
    assert [name for name in a if not torch.equal(a[name], b[name])] == []


def test_views_may_ease_off_once_the_constraint_is_on(small, images):
    views = build_views(small({"views.change": {"flip": 0.0}, "views.change_later": {"crop_scale": [1.0, 1.0]}}))
    first, later = (views(images, torch.Generator().manual_seed(0), pretext) for pretext in (True, False))
    assert not torch.equal(first[0], later[0])
