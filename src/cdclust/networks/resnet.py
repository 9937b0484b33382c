"""ResNets of any width and depth, with the 3x3 stem for small images or the usual one for large."""

import torch
from torch import Tensor, nn
from torchvision.models.resnet import BasicBlock, Bottleneck

# The blocks a stage and the kind of block of each depth (He et al. 2016; resnet10 is the usual small sibling).
DEPTHS: dict[str, tuple[type[BasicBlock] | type[Bottleneck], tuple[int, ...]]] = {
    "resnet10": (BasicBlock, (1, 1, 1, 1)),
    "resnet18": (BasicBlock, (2, 2, 2, 2)),
    "resnet34": (BasicBlock, (3, 4, 6, 3)),
    "resnet50": (Bottleneck, (3, 4, 6, 3)),
    "resnet101": (Bottleneck, (3, 4, 23, 3)),
    "resnet152": (Bottleneck, (3, 8, 36, 3)),
}


class ResNet(nn.Module):
    """torchvision's blocks under any stem, width and number of stages; (B, channels, H, W) to (B, out_features).

    Parameters are named as torchvision names them, so that a width of 64 under the large stem loads its weights.
    """

    def __init__(
        self,
        name: str,
        width: int,
        stem: str,
        blocks: tuple[int, ...] | None = None,
        channels: int = 3,
        strides: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__()
        block, usual = DEPTHS[name]
        large = stem == "large"
        self.conv1 = nn.Conv2d(
            channels, width, 7 if large else 3, stride=2 if large else 1, padding=3 if large else 1, bias=False
        )
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1) if large else nn.Identity()
        self.out_features = width
        self.stages: list[str] = []
        blocks = blocks or usual
        strides = strides or (1, *[2] * (len(blocks) - 1))
        for stage, (count, stride) in enumerate(zip(blocks, strides, strict=True)):
            self.stages.append(f"layer{stage + 1}")
            self.add_module(self.stages[-1], self._stage(block, width * 2**stage, count, stride))
        self.pool: nn.Module = nn.AdaptiveAvgPool2d(1)
        self._initialise()

    def _stage(self, block: type[BasicBlock] | type[Bottleneck], planes: int, count: int, stride: int) -> nn.Module:
        layers: list[nn.Module] = []
        for index in range(count):
            step, inside, out = stride if index == 0 else 1, self.out_features, planes * block.expansion
            shortcut = None
            if step != 1 or inside != out:
                shortcut = nn.Sequential(nn.Conv2d(inside, out, 1, stride=step, bias=False), nn.BatchNorm2d(out))
            layers.append(block(inside, planes, step, shortcut))
            self.out_features = out
        return nn.Sequential(*layers)

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def keep_places(self, channels: int, size: int) -> "ResNet":
        """Features become the last stage as it is, flattened, for images of this size; where a line is then counts."""
        self.pool = nn.Identity()
        with torch.no_grad():
            self.out_features = self.eval()(torch.zeros(1, channels, size, size)).shape[1]
        return self

    def forward(self, images: Tensor) -> Tensor:
        """Features (B, out_features): the mean over the last stage's places, or all of them."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        for stage in self.stages:
            x = getattr(self, stage)(x)
        return torch.flatten(self.pool(x), 1)
