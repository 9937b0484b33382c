"""Training a head on features of ImageNet's size: python benchmarks/imagenet_features.py FOLDER [--rows 1281167].

Writes random features to FOLDER (27 GB at full size; removed at the end), trains one epoch on them as `cdclust fit`
does on a feature cache, and prints time, memory, and what 200 epochs would take beside the paper's way, two passes of
the backbone for each image and epoch.
"""

import argparse
import resource
import shutil
import time
from pathlib import Path

import numpy as np
import torch

from cdclust import recipe as recipes
from cdclust.data.features import CacheKey, FeatureCache, open_cache
from cdclust.engine.compute import resolve_compute
from cdclust.engine.features import FeatureFeed, mean_of
from cdclust.engine.train import Trainer
from cdclust.jobs import setup
from cdclust.jobs.listeners import Silent
from cdclust.networks.encoder import Features
from cdclust.networks.resnet import ResNet

EPOCHS = 200
BLOCK = 16_384  # rows written at a time
FORWARDS = 8  # batches of the backbone that are timed
BATCH = 32


def written(folder: Path, rows: int, dim: int, views: int) -> FeatureCache:
    key = CacheKey("random", "random", 224, views, "[]", "fp32", rows, dim)
    cache = open_cache(folder, "imagenet", key)
    chance = np.random.default_rng(0)
    block = chance.normal(size=(BLOCK, views, dim)).astype(np.float16)
    for start in range(0, rows, BLOCK):
        n = min(BLOCK, rows - start)
        order = chance.permutation(BLOCK)[:n]  # no two blocks the same
        cache.views[start : start + n] = block[order]
        cache.clean[start : start + n] = block[order, 0]
    cache.views.flush()
    cache.clean.flush()
    return cache


def backbone_rate() -> float:
    """ResNet-50's images a second, forward alone, in the best precision here."""
    network = ResNet("resnet50", 64, "large").eval().to(memory_format=torch.channels_last)
    compute = resolve_compute()
    images = torch.randn(BATCH, 3, 224, 224).to(memory_format=torch.channels_last)
    with torch.inference_mode(), torch.autocast("cpu", compute.autocast, enabled=compute.autocast is not None):
        network(images)
        start = time.perf_counter()
        for _ in range(FORWARDS):
            network(images)
    return FORWARDS * BATCH / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=1_281_167)
    parser.add_argument("--dim", type=int, default=2048)
    parser.add_argument("--views", type=int, default=4)
    parser.add_argument("--clusters", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=1024)
    asked = parser.parse_args()
    start = time.perf_counter()
    cache = written(asked.folder, asked.rows, asked.dim, asked.views)
    print(f"{asked.rows:,} x {asked.views} views + 1 of {asked.dim}: written in {time.perf_counter() - start:.0f} s")

    compute = resolve_compute("cpu")
    settings = {"n_clusters": asked.clusters, "epochs": 1, "batch_size": asked.batch, "network.features": asked.dim}
    recipe = recipes.load("photos").changed({**settings, "pretext": 0, "positives": "views"})
    method = setup.build_network(recipe)
    feed = FeatureFeed(cache, np.arange(asked.rows), compute.device)
    assert isinstance(method.encoder.backbone, Features)
    start = time.perf_counter()
    method.encoder.backbone.mean.copy_(mean_of(feed))
    print(f"mean of the features: {time.perf_counter() - start:.0f} s")
    progress = Trainer(method, feed, recipe, compute, Silent()).train()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    held = int(next(x for x in Path("/proc/self/status").read_text().splitlines() if "RssAnon" in x).split()[1]) / 2**20
    rate = backbone_rate()
    paper = 2 * asked.rows / rate * EPOCHS
    ours = progress.seconds * EPOCHS + (asked.views + 1) * asked.rows / rate
    print(f"one epoch, K = {asked.clusters}: {progress.seconds:.0f} s, {asked.rows / progress.seconds:,.0f} rows/s")
    print(f"memory: {held:.1f} GiB of its own; {peak:.1f} GiB at most with pages of the mapped files")
    print(f"ResNet-50 forward: {rate:.0f} images/s")
    print(f"{EPOCHS} epochs: {ours / 3600:.0f} h with the cache, {paper / 3600:.0f} h in the paper's way")
    shutil.rmtree(cache.folder)


if __name__ == "__main__":
    main()
