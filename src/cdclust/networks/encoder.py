"""The encoder f and the head h, built from a recipe: z = h(f(x))."""

import difflib
from typing import Any, cast

import torch
from torch import Tensor, nn

from cdclust.errors import UserError
from cdclust.networks.resnet import DEPTHS, ResNet
from cdclust.settings import HeadSettings, NetworkSettings


def build_backbone(settings: NetworkSettings, channels: int = 3, size: int | None = None) -> nn.Module:
    """f: images (B, channels, H, W) to features (B, out_features); every backbone has `out_features`."""
    if settings.pretrained is not None:
        if settings.features is None:
            raise UserError("network.features is not known yet: it is measured when the backbone is loaded")
        return Features(settings.features)
    name = settings.backbone
    if name.startswith("timm:"):
        return TimmBackbone(name.removeprefix("timm:"), channels, size)
    if name not in DEPTHS:
        near = difflib.get_close_matches(name, DEPTHS, n=1, cutoff=0.0)[0]
        raise UserError(f"network.backbone = {name!r}: unknown; did you mean {near}? timm's models are timm:NAME")
    if settings.strides is not None and len(settings.strides) != len(settings.blocks or DEPTHS[name][1]):
        raise UserError(f"network.strides = {list(settings.strides)}: give one stride a stage")
    network = ResNet(name, settings.width, settings.stem, settings.blocks, channels, settings.strides)
    if settings.pool == "mean":
        return network
    if size is None:
        raise UserError("network.pool = places needs images of one size; set data.size")
    return network.keep_places(channels, size)


class TimmBackbone(nn.Module):
    """Any model of timm without its classifier, from random weights: ViTs and ConvNeXts train as ResNets do."""

    def __init__(self, name: str, channels: int, size: int | None) -> None:
        super().__init__()
        try:
            import timm
        except ImportError:
            raise UserError(f"network.backbone = timm:{name} needs timm: pip install 'cdclust[timm]'") from None
        if not timm.is_model(name):
            near = difflib.get_close_matches(name, timm.list_models(), n=1, cutoff=0.0)[0]
            raise UserError(f"network.backbone = timm:{name}: timm has no such model; did you mean timm:{near}?")
        options: dict[str, Any] = {"num_classes": 0, "in_chans": channels}
        sized = options | ({"img_size": size} if size else {})
        try:
            self.model = timm.create_model(name, **sized)
        except TypeError:  # convolutional models take images of any size and no such argument
            self.model = timm.create_model(name, **options)
        self.out_features = int(cast(int, self.model.num_features))

    def forward(self, images: Tensor) -> Tensor:
        """Pooled features (B, out_features)."""
        features: Tensor = self.model(images)
        return features


class Features(nn.Module):
    """Stands where a backbone does when its features come ready-made: seen from their mean, on one scale."""

    mean: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.out_features = size
        self.register_buffer("mean", torch.zeros(size))

    def forward(self, features: Tensor) -> Tensor:
        """(B, D), each row of the length that D numbers of unit variance have."""
        scaled: Tensor = nn.functional.normalize(features - self.mean, dim=1) * self.out_features**0.5
        return scaled


class MLP(nn.Sequential):
    """Linear layers with ReLU between, and batch normalisation where asked."""

    def __init__(self, inside: int, hidden: int, out: int, layers: int, batch_norm: bool, batch_norm_out: bool) -> None:
        modules: list[nn.Module] = []
        for _ in range(layers - 1):
            modules.append(nn.Linear(inside, hidden, bias=not batch_norm))
            if batch_norm:
                modules.append(nn.BatchNorm1d(hidden))
            modules.append(nn.ReLU(inplace=True))
            inside = hidden
        modules.append(nn.Linear(inside, out, bias=not batch_norm_out))
        if batch_norm_out:
            modules.append(nn.BatchNorm1d(out, affine=False))
        super().__init__(*modules)


def build_head(settings: HeadSettings, inside: int, n_clusters: int) -> MLP:
    """h: features to z = [z_c (K), z_n (C)], before either half is normalised."""
    return MLP(
        inside,
        settings.hidden,
        n_clusters + settings.z_n,
        settings.layers,
        settings.batch_norm,
        settings.batch_norm_out,
    )


def last_linear(head: nn.Sequential) -> nn.Linear:
    """The layer that makes z."""
    return [module for module in head if isinstance(module, nn.Linear)][-1]


def before_last_linear(head: nn.Sequential) -> nn.Sequential:
    """Everything in front of it."""
    modules = list(head)
    return nn.Sequential(*modules[: modules.index(last_linear(head))])


class Encoder(nn.Module):
    """h(f(x)): what MoCo calls the base encoder."""

    def __init__(self, backbone: nn.Module, head: MLP) -> None:
        super().__init__()
        self.backbone, self.head = backbone, head

    def forward(self, images: Tensor) -> Tensor:
        """z (B, K + C), before either half is normalised."""
        z: Tensor = self.head(self.backbone(images))
        return z
