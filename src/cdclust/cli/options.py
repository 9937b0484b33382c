"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Source = Annotated[
    str,
    typer.Argument(
        help="a folder, a .csv/.parquet/.txt manifest, a .npy/.npz, .tar files ('{000..123}.tar'), or a data set's "
        "name: cifar10, torchvision:NAME, hf:NAME[:CONFIG][:SPLIT], ..."
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda[:i] or mps")]
Precision = Annotated[str, typer.Option(help="auto, fp32, bf16 or fp16")]
Root = Annotated[Path | None, typer.Option(help="where named data sets lie; else $CDCLUST_DATA or the cache")]
Labels = Annotated[str | None, typer.Option(help="'folders', or the label column; only ever used to score")]
Strict = Annotated[bool, typer.Option("--strict", help="an image that cannot be read ends the run")]
Backbone = Annotated[
    str | None, typer.Option(help="frozen: efficientnet-lite0, timm:NAME, torchvision:NAME, a file, a run; or scratch")
]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON for scripts")]
