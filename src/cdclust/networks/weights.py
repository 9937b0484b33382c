"""The encoder inside a file of weights: whose names and which network, found out from the tensors themselves."""

from __future__ import annotations

import argparse
import pickle
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from cdclust import recipe as recipes
from cdclust.errors import UserError
from cdclust.networks.resnet import ResNet

HOLDERS = ("teacher", "state_dict", "model", "model_state_dict", "student")  # where checkpoints keep their tensors
FOLLOWERS = ("momentum", "encoder_k", "ema", "twin")  # copies that stand beside the encoder in a file
# What the prefix of an encoder's tensors says of how it was trained.
KNOWN = (
    ("module.encoder_q.", "MoCo v2, images alone"),
    ("module.base_encoder.", "MoCo v3, images alone"),
    ("projection_head", "SwAV, images alone"),
    ("prototypes", "SwAV, images alone"),
)
HEAD = re.compile(r"(fc|head|heads|classifier)\.")
WIDTH_OF_A_HEAD = 64  # of attention, nearly everywhere


@dataclass(frozen=True)
class Loaded:
    """A network with a file's weights."""

    network: nn.Module
    size: int
    trained_with: str
    saw_labels: bool | None
    matched: str


def network_from_file(path: Path) -> Loaded:
    """A ResNet or ViT from a checkpoint of MoCo v2 or v3, DINO, SwAV, SimCLR, torchvision or timm."""
    tensors = _tensors(path)
    prefix = _prefix(tensors, path)
    inside = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
    network, size = _vit(inside, prefix) if "patch_embed.proj.weight" in inside else _resnet(inside, path)
    wanted = network.state_dict()
    missing = [n for n in wanted if n not in inside and not n.endswith("num_batches_tracked")]
    odd = [n for n in wanted if n in inside and inside[n].shape != wanted[n].shape]
    if missing or odd:
        first = (missing or odd)[0]
        raise UserError(
            f"--backbone {path}: {len(wanted) - len(missing) - len(odd)} of the encoder's {len(wanted)} tensors "
            f"match, {len(missing)} are missing and {len(odd)} have another shape (the first: {first}); all must match"
        )
    network.load_state_dict({name: inside.get(name, value) for name, value in wanted.items()})
    others = len(tensors) - sum(name in wanted for name in inside)
    trained_with, saw = _trained_with(tensors, prefix, inside)
    matched = f"{len(wanted)} of {len(wanted)} tensors of the encoder, {others} others left in the file"
    return Loaded(network, size, trained_with, saw, matched)


def _tensors(path: Path) -> dict[str, Tensor]:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        with torch.serialization.safe_globals([argparse.Namespace]):  # many files keep their options, as plain values
            content: Any = torch.load(path, map_location="cpu", weights_only=True)
    except (SafetensorError, OSError, RuntimeError, ValueError, EOFError, pickle.UnpicklingError) as error:
        reason = " ".join(str(error).split())[:160]
        raise UserError(
            f"--backbone {path} cannot be read safely as weights ({type(error).__name__}: {reason}); save its state "
            "dict alone, with torch.save or as safetensors"
        ) from error
    for holder in HOLDERS:
        if isinstance(content, Mapping) and isinstance(content.get(holder), Mapping):
            content = content[holder]
    tensors = {n: v for n, v in content.items() if isinstance(v, Tensor)} if isinstance(content, Mapping) else {}
    if not tensors:
        raise UserError(f"--backbone {path} holds no state dict of tensors; save one with torch.save")
    return tensors


def _prefix(tensors: Mapping[str, Tensor], path: Path) -> str:
    """What stands before the encoder's own names; the trained encoder, not a copy that follows it."""
    signs = ("layer1.0.conv1.weight", "patch_embed.proj.weight")
    found = [name.removesuffix(sign) for sign in signs for name in tensors if name.endswith(sign)]
    found = [p for p in found if not p or p.endswith(".")]
    if not found:
        raise UserError(
            f"--backbone {path}: neither a ResNet nor a ViT by its tensors' names (the first: {next(iter(tensors))})"
        )
    return min(found, key=lambda p: (any(word in p for word in FOLLOWERS), len(p)))


def _resnet(inside: Mapping[str, Tensor], path: Path) -> tuple[nn.Module, int]:
    stages = 1 + max(int(m[1]) for name in inside if (m := re.match(r"layer(\d+)\.", name))) - 1
    blocks = tuple(
        1 + max(int(m[1]) for name in inside if (m := re.match(rf"layer{stage}\.(\d+)\.", name)))
        for stage in range(1, stages + 1)
    )
    if "conv1.weight" not in inside:
        raise UserError(f"--backbone {path}: its ResNet has no conv1; stems of several layers are not known here")
    stem = inside["conv1.weight"]
    large = stem.shape[-1] == 7
    kind = "resnet50" if "layer1.0.conv3.weight" in inside else "resnet18"
    network = ResNet(kind, stem.shape[0], "large" if large else "small", blocks, stem.shape[1])
    return network, 224 if large else 32


def _vit(inside: Mapping[str, Tensor], prefix: str) -> tuple[nn.Module, int]:
    from timm.models.vision_transformer import VisionTransformer

    patch = inside["patch_embed.proj.weight"]
    dim, side = patch.shape[0], patch.shape[-1]
    depth = 1 + max(int(m[1]) for name in inside if (m := re.match(r"blocks\.(\d+)\.", name)))
    places = inside["pos_embed"].shape[1] - 1
    size = round(places**0.5) * side
    heads = 12 if "base_encoder" in prefix and dim == 384 else dim // WIDTH_OF_A_HEAD  # MoCo v3's small ViT has 12
    network = VisionTransformer(
        img_size=size,
        patch_size=side,
        embed_dim=dim,
        depth=depth,
        num_heads=heads,
        num_classes=0,
        init_values=1.0 if "blocks.0.ls1.gamma" in inside else None,
        qkv_bias="blocks.0.attn.qkv.bias" in inside,
    )
    return network, size


def _trained_with(tensors: Mapping[str, Tensor], prefix: str, inside: Mapping[str, Tensor]) -> tuple[str, bool | None]:
    for sign, words in KNOWN:
        if prefix == sign or any(sign in name for name in tensors):
            return words, False
    if "patch_embed.proj.weight" in inside and not any(HEAD.match(name) for name in inside):
        return "not known; a ViT without a classifier, as DINO publishes it", None
    classifier = [value for name, value in inside.items() if HEAD.match(name) and name.endswith("weight")]
    if len(classifier) == 1 and classifier[0].shape[0] == 1000:
        return "ImageNet, with its labels, by its classifier of 1,000 classes", True
    return "not known", None


def network_from_run(path: Path) -> tuple[Loaded, tuple[float, ...], tuple[float, ...]]:
    """The backbone that a run trained from scratch, and the mean and deviation of its pixels."""
    from cdclust.networks.encoder import build_backbone
    from cdclust.run import open_run

    run = open_run(path)
    recipe: recipes.Recipe = run.recipe()
    if recipe.network.pretrained is not None:
        raise UserError(
            f"--backbone {path}: that run trained a head on {recipe.network.pretrained}; name that backbone instead"
        )
    if recipe.data.channels != 3:
        raise UserError(f"--backbone {path}: that run's images are grey; as a backbone it would have to see colour")
    size = recipe.data.size or 32
    network = build_backbone(recipe.network, 3, recipe.views.size or size)
    prefix = "encoder.backbone."
    state = {n.removeprefix(prefix): v for n, v in load_file(run.weights).items() if n.startswith(prefix)}
    missing, unexpected = network.load_state_dict(state, strict=False)
    if missing or unexpected:
        raise UserError(f"--backbone {path}: {len(missing)} tensors are missing, {len(unexpected)} do not belong")
    loaded = Loaded(network, size, f"the run {recipe.name}, images alone", False, f"{len(state)} tensors")
    assert recipe.data.mean is not None
    assert recipe.data.std is not None
    return loaded, recipe.data.mean, recipe.data.std
