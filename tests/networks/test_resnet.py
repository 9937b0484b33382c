import pytest
import torch
import torchvision

from cdclust.errors import UserError
from cdclust.networks.encoder import Encoder, build_backbone, build_head
from cdclust.networks.resnet import DEPTHS
from cdclust.recipe import HeadSettings, NetworkSettings

IMAGES = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_the_large_stem_at_width_64_is_torchvisions_network(name):
    ours = build_backbone(NetworkSettings(backbone=name, stem="large"))
    theirs = torchvision.models.get_model(name, weights=None)
    theirs.fc = torch.nn.Identity()
    state = theirs.state_dict()
    assert {k: v.shape for k, v in ours.state_dict().items()} == {k: v.shape for k, v in state.items()}
    ours.load_state_dict(state)
    images = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(ours.eval()(images), theirs.eval()(images))


@pytest.mark.parametrize("name", DEPTHS)
def test_every_depth_has_its_blocks(name):
    blocks = DEPTHS[name][1]
    network = build_backbone(NetworkSettings(backbone=name, width=4))
    assert tuple(len(getattr(network, f"layer{i + 1}")) for i in range(4)) == blocks


@pytest.mark.parametrize("width", [4, 10, 16])
@pytest.mark.parametrize("blocks", [(1,), (1, 2, 1), (1, 1, 1, 1, 1)])
@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_any_width_and_any_stages_give_the_features_they_say(name, blocks, width):
    network = build_backbone(NetworkSettings(backbone=name, width=width, blocks=blocks))
    features = network(IMAGES)
    expansion = {"resnet18": 1, "resnet50": 4}[name]
    assert features.shape == (2, network.out_features)
    assert network.out_features == width * 2 ** (len(blocks) - 1) * expansion


@pytest.mark.parametrize(("stem", "places"), [("small", 16), ("large", 4)])
def test_the_small_stem_keeps_the_resolution_and_the_large_one_quarters_it(stem, places):
    network = build_backbone(NetworkSettings(width=4, stem=stem))
    seen = []
    network.layer1.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape[-1]))
    network(IMAGES)
    assert seen == [places]


def test_grey_images_have_one_channel():
    assert build_backbone(NetworkSettings(width=4), channels=1)(IMAGES[:, :1]).shape == (2, 32)


@pytest.mark.parametrize(
    ("name", "near"), [("resnet19", "resnet1"), ("Resnet50", "resnet50"), ("timm:vit_tinny_patch16_224", "vit_tiny")]
)
def test_an_unknown_name_names_the_nearest(name, near):
    with pytest.raises(UserError, match=f"did you mean .*{near}") as error:
        build_backbone(NetworkSettings(backbone=name))
    assert "\n" not in str(error.value)


def test_a_vit_of_timm_trains():
    vit = build_backbone(NetworkSettings(backbone="timm:vit_tiny_patch16_224"), size=32)
    encoder = Encoder(vit, build_head(HeadSettings(hidden=8, z_n=4), vit.out_features, 3))
    z = encoder(torch.randn(2, 3, 32, 32))
    assert z.shape == (2, 7)
    z.square().sum().backward()
    assert all(p.grad is not None for p in encoder.parameters())


def test_a_convolutional_model_of_timm_takes_images_of_any_size():
    network = build_backbone(NetworkSettings(backbone="timm:convnext_atto"), channels=1, size=48)
    with torch.no_grad():
        assert network(torch.randn(1, 1, 32, 32)).shape == (1, network.out_features)


def kinds(head: torch.nn.Sequential) -> list[str]:
    return [type(module).__name__ for module in head]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"layers": 1}, ["Linear"]),
        ({"layers": 2}, ["Linear", "ReLU", "Linear"]),
        ({"layers": 3, "batch_norm": True}, ["Linear", "BatchNorm1d", "ReLU"] * 2 + ["Linear"]),
        ({"layers": 1, "batch_norm_out": True}, ["Linear", "BatchNorm1d"]),
    ],
)
def test_the_head_has_the_layers_of_the_recipe(changes, expected):
    head = build_head(HeadSettings(**changes), 6, n_clusters=3)
    assert kinds(head) == expected
    assert head(torch.randn(4, 6)).shape == (4, 3 + 128)


def test_normalisation_behind_the_output_has_no_scale_or_shift():
    head = build_head(HeadSettings(layers=1, batch_norm_out=True), 6, n_clusters=3)
    assert [name for name, _ in head.named_parameters()] == ["0.weight"]


def test_kept_places_are_the_last_stage_flattened():
    settings = NetworkSettings(backbone="resnet18", width=4, blocks=(1, 1), strides=(2, 2), pool="places")
    network = build_backbone(settings, 1, 16).eval()
    images = torch.rand(2, 1, 16, 16)
    seen = []
    network.layer2.register_forward_hook(lambda module, inputs, output: seen.append(output))
    features = network(images)
    assert network.out_features == 8 * 4 * 4
    torch.testing.assert_close(features, seen[0].flatten(1))


def test_as_many_strides_as_stages_are_asked_for():
    with pytest.raises(UserError, match="one stride a stage"):
        build_backbone(NetworkSettings(backbone="resnet18", strides=(2, 2)), 3, 32)
