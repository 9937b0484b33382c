"""Python's front door: a scikit-learn estimator over images."""

import tempfile
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state, estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from cdclust import console, notebook
from cdclust import recipe as recipes
from cdclust.data import Catalogue, open_stream
from cdclust.engine.assign import Assigned
from cdclust.engine.compute import resolve_compute
from cdclust.jobs.fit import fit
from cdclust.jobs.listeners import Silent
from cdclust.jobs.predict import Model, load_model
from cdclust.jobs.setup import training_split
from cdclust.jobs.unknown_k import AUTO, choose, record


class CDC(ClusterMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Contrastive representation disentanglement for clustering, as scikit-learn clusters.

    X is an array or tensor of images (N, H, W), (N, H, W, 3) or (N, 3, H, W), a list of paths, a folder, a manifest,
    a data set's name, or a torch Dataset.

    Parameters
    ----------
    n_clusters : int or "auto"
        K; "auto" lets the images propose it, on a frozen backbone.
    recipe : str
        A shipped recipe's name (`cdclust recipes`) or a file; "auto" is the one for photographs where X is files, the
        one for small images, trained from scratch, where X is pixels.
    backbone : str or None
        A frozen backbone's name or file, "scratch", or None for the recipe's.
    settings : dict or None
        Fields of the recipe to change, {"epochs": 50, "objective.alpha": 1}.
    random_state : int, RandomState or None
        The seed everything random follows from; None and a RandomState draw one.
    out : path or None
        Keep the run folder here; None keeps none.
    resume : bool
        Go on with the run in `out`.
    device, precision : str
        As in the shell.
    verbose : bool
        Show progress.

    Attributes
    ----------
    n_clusters_ : int
        K, also where it was proposed.
    labels_ : array (N,)
        The cluster of each image; -1 for one that could not be read.
    probabilities_ : array (N,)
        How sure the choice is; 0 for an unreadable image.
    embedding_ : array (N, D)
        Backbone features; zeros for an unreadable image.
    metrics_ : dict
        metrics.json; with y, the scores too.
    history_ : list of dict
        An entry an epoch.
    gallery_ : list of Shelf
        Each cluster's size and a few small pictures, the largest first: what a notebook shows.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from cdclust import CDC
    >>> images = load_digits().images / 16
    >>> model = CDC(n_clusters=10, recipe="digits", settings={"epochs": 1}).fit(images)
    >>> model.predict_proba(images[:3]).shape
    (3, 10)
    """

    def __init__(
        self,
        n_clusters: int | str = 10,
        *,
        recipe: str = "auto",
        backbone: str | None = None,
        settings: dict[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = 0,
        out: str | PathLike[str] | None = None,
        resume: bool = False,
        device: str = "auto",
        precision: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.recipe = recipe
        self.backbone = backbone
        self.settings = settings
        self.random_state = random_state
        self.out = out
        self.resume = resume
        self.device = device
        self.precision = precision
        self.verbose = verbose

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Train on images and assign them; y is only ever used to score the result."""
        chosen = self.random_state
        seed = chosen if isinstance(chosen, int) else check_random_state(chosen).randint(2**31)
        automatic = isinstance(self.n_clusters, str) and self.n_clusters == AUTO
        changes = {**({} if automatic else {"n_clusters": self.n_clusters}), "seed": seed, **(self.settings or {})}
        if self.backbone is not None:
            changes = {"network.pretrained": None if self.backbone == "scratch" else self.backbone, **changes}
        name = recipes.usual(X, self.backbone) if self.recipe == "auto" else self.recipe
        settings = recipes.load(name).changed(changes)
        asked = settings.training.precision if self.precision == "auto" else self.precision
        compute = resolve_compute(self.device, asked)
        watcher = console.watcher("fit") if self.verbose else Silent()
        with tempfile.TemporaryDirectory() as folder, torch.random.fork_rng():  # torch's generator stays the caller's
            path = Path(self.out) if self.out is not None else Path(folder) / "run"
            proposal = None
            try:
                if automatic:
                    settings, proposal = choose(X, settings, compute, watcher, labels=y)
                kept = self.out is not None
                run = fit(X, settings, path, compute, resume=self.resume, labels=y, listener=watcher, report=kept)
            finally:
                watcher.close()
            if proposal is not None:
                record(run, proposal)
            self.n_clusters_ = settings.n_clusters
            self.model_: Model = load_model(run, compute)
            self.metrics_, self.history_ = run.metrics(), run.log()
        split = training_split(X, settings)
        images, assigned = self.model_.assign(X, split=split)
        self.labels_ = images.spread(assigned.clusters)
        self.probabilities_ = images.spread(assigned.probabilities, 0)
        self.embedding_ = images.spread(assigned.features, 0)
        self.gallery_ = notebook.shelves(open_stream(X, split=split), images.rows, assigned, settings.n_clusters)
        return self

    def show(self) -> None:
        """Show a few images of each cluster: in the notebook, or from elsewhere in the browser."""
        check_is_fitted(self, "gallery_")
        notebook.show(notebook.gallery(self.gallery_, self.metrics_))

    def _repr_html_inner(self) -> str:
        """scikit-learn's box, and after fit the clusters below it."""
        box: str = estimator_html_repr(self)
        return box + notebook.table(self.gallery_, self.metrics_) if hasattr(self, "gallery_") else box

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        shown: dict[str, Any] = super()._repr_mimebundle_(**options)
        return shown | ({"text/html": self._repr_html_inner()} if "text/html" in shown else {})

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The cluster of each image; -1 for one that cannot be read."""
        images, assigned = self._assigned(X)
        return images.spread(assigned.clusters)

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """The probability of each cluster (N, K); a row of zeros for an image that cannot be read."""
        images, assigned = self._assigned(X)
        return images.spread(assigned.table, 0)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Backbone features (N, D); a row of zeros for an image that cannot be read."""
        images, assigned = self._assigned(X)
        return images.spread(assigned.features, 0)

    def _assigned(self, source: Any) -> tuple[Catalogue, Assigned]:
        check_is_fitted(self, "model_")
        return self.model_.assign(source, split="all")
