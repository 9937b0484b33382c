"""The sections of a recipe: every setting with its default, its bounds and its meaning, and here alone."""

import math
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, field_validator, model_validator

Stages = Annotated[tuple[PositiveInt, ...], Field(min_length=1)]


class Settings(BaseModel):
    """What all sections share: no unknown fields, no change after validation."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class DataSettings(Settings):
    """Which images, at what size."""

    size: int | None = Field(None, ge=4, description="side in pixels of the square images; none: as they come")
    channels: Literal[1, 3] | None = Field(None, description="grey or colour; none: as the images are")
    train_split: str = Field("train", description="what is trained on, where the source has splits")
    test_split: str | None = Field("test", description="what is scored, where the source has it and labels")
    mean: tuple[float, ...] | None = Field(None, description="a channel, taken off pixels in 0..1; none: measured")
    std: tuple[float, ...] | None = Field(None, description="a channel, then divided by; none: measured")


class ViewSettings(Settings):
    """The random views a network is trained on."""

    policy: str = Field("cifar", description="cifar, moco-v2, moco-v3, drawings or strong")
    size: int | None = Field(None, ge=4, description="side of a training view; none: the image's")
    change: dict[str, Any] = Field(default_factory=dict, description="fields of the policy to change, for both views")
    change_later: dict[str, Any] = Field(default_factory=dict, description="more changes, after objective.pretext")


class FeatureSettings(Settings):
    """What is made of a frozen backbone's features; without network.pretrained nothing here counts."""

    size: int | None = Field(None, ge=16, description="side of the images it sees; none: what it was made for")
    views: int = Field(
        2, ge=0, description="random views of each image that are embedded, once, beside the whole image"
    )
    exact: bool = Field(False, description="fresh views through the backbone at every step, as in the paper")
    positives: Literal["views", "neighbours", "both"] = Field(
        "views", description="a view's partner: another view of the image, of a near one, or of either"
    )
    neighbours: int = Field(20, ge=1, description="how many near images count")


class NetworkSettings(Settings):
    """The encoder f."""

    pretrained: str | None = Field(None, description="a frozen backbone's name or file; none: from scratch")
    features: int | None = Field(None, ge=1, description="size of a frozen backbone's features; none: measured")
    backbone: str = Field("resnet18", description="resnet10 to resnet152, or timm:NAME")
    width: int = Field(64, ge=4, description="channels of a ResNet's first stage (64 in the paper)")
    blocks: Stages | None = Field(None, description="blocks a stage; none: those of the backbone's name")
    strides: Stages | None = Field(None, description="of each stage; none: 1, then 2 each")
    pool: Literal["mean", "places"] = Field("mean", description="mean over places, or keep them (tiny drawings)")
    stem: Literal["small", "large"] = Field("small", description="3x3 for images to 96 pixels; 7x7 and pooling")


class HeadSettings(Settings):
    """The MLP h whose output is z = [z_c, z_n]."""

    split: bool = Field(True, description="false: no z_c, the plain pretext method, clustered by k-means")
    z_n: int = Field(128, ge=1, description="C, the size of the instance half")
    hidden: int = Field(512, ge=1, description="width of the hidden layers")
    layers: int = Field(2, ge=1, description="linear layers")
    batch_norm: bool = Field(False, description="batch normalisation behind each hidden layer")
    batch_norm_out: bool = Field(False, description="and, without scale and shift, behind the output (MoCo v3)")


class MethodSettings(Settings):
    """The contrastive framework."""

    framework: Literal["moco-v2", "simclr", "moco-v3"] = Field("moco-v2", description="which views are contrasted how")
    queue: int = Field(4096, ge=1, description="moco-v2: number of negatives kept")
    momentum: float = Field(0.99, ge=0, le=1, description="of the twin's moving average")
    momentum_to_one: bool = Field(False, description="let the momentum rise to 1 by a half cosine (MoCo v3)")
    split_batch_norm: int = Field(8, ge=1, description="moco-v2: parts of a batch that share batch statistics")
    symmetric: bool | None = Field(None, description="moco: both ways, at twice the cost; none: moco-v3 yes, v2 no")
    predictor_hidden: int = Field(4096, ge=1, description="moco-v3: width of the predictor's hidden layer")


class ObjectiveSettings(Settings):
    """The paper's objective, and its readings where the paper is open."""

    alpha: float = Field(5.0, ge=0, description="weight of the constraint (equation 8)")
    pretext: float = Field(
        0.0, ge=0, lt=1, description="share of training without the constraint, before z_c is seeded"
    )
    alpha_warmup: float = Field(0.0, ge=0, lt=1, description="share of training over which alpha then rises from 0")
    seeding_starts: int = Field(40, ge=0, description="starts of which the best seeds z_c; 0: z_c stays as it is")
    tau: float = Field(0.15, gt=0, description="temperature of the contrast")
    t: float = Field(0.10, gt=0, description="temperature of the cluster probabilities")
    epsilon: float = Field(0.05, gt=0, description="entropy regularisation of equation 5")
    sinkhorn_iterations: int = Field(3, ge=1, description="of equation 5")
    sinkhorn_input: Literal["logits", "scaled"] = Field("logits", description="z_c (pseudo-code) or z_c / t (text)")
    sizes: Literal["even", "soft"] | tuple[float, ...] = Field(
        "even", description="the clusters' shares in equation 5: even; soft, for groups known to differ; or K of them"
    )
    sinkhorn_queue: int = Field(0, ge=0, description="recent z_c that join the batch in equation 5")
    cross_entropy: Literal["sum", "mean"] = Field("sum", description="over clusters: equation 6, or the pseudo-code")
    normalise_z_c: bool = Field(True, description="false is an ablation")
    info_nce: bool = Field(True, description="false is an ablation: the constraint alone")

    @field_validator("sizes", mode="before")
    @classmethod
    def _a_word_or_shares(cls, value: Any) -> Any:
        words = ("even", "soft")
        if value in words:
            return value
        if isinstance(value, (list, tuple)) and all(type(v) in (int, float) and 0 < v < math.inf for v in value):
            return tuple(value)
        raise ValueError("it must be even, soft, or a share above 0 for each cluster, such as [50, 30, 20]")

    @model_validator(mode="after")
    def _something_is_minimised(self) -> Self:
        if not self.info_nce and (self.pretext or not self.alpha):
            raise ValueError("without info_nce the constraint is all there is: set pretext=0 and alpha above 0")
        return self


class OptimizerSettings(Settings):
    """How weights move."""

    name: Literal["sgd", "adamw", "lars"] = Field("sgd", description="which optimiser")
    lr: float = Field(0.06, gt=0, description="at its highest")
    momentum: float = Field(0.9, ge=0, lt=1, description="of sgd and lars")
    weight_decay: float = Field(5e-4, ge=0, description="of all weights, but see decay_norms")
    decay_norms: bool = Field(True, description="decay biases and normalisation too; never with lars")
    schedule: Literal["cosine", "constant"] = Field("cosine", description="of the learning rate, behind the warm-up")
    warmup_epochs: float = Field(0.0, ge=0, description="linear rise from 0")
    clip: float | None = Field(None, gt=0, description="largest norm of the gradient")


class TrainingSettings(Settings):
    """How long, how much at a time, in what precision."""

    epochs: int = Field(1200, ge=1, description="times that every image is trained on")
    batch_size: int = Field(512, ge=2, description="images a step")
    attempts: int = Field(1, ge=1, description="networks trained, of which the one with the lowest loss is kept")
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field("auto", description="of the networks' arithmetic")
    channels_last: bool = Field(True, description="memory layout of the encoder")
    threads: int | None = Field(None, ge=1, description="of the processor; none: as many as torch takes")
    evaluate_every: int = Field(10, ge=1, description="epochs between scorings on clean images")
    checkpoint_seconds: float = Field(60.0, ge=0, description="at least this long between checkpoints")
