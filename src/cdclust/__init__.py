"""Image clustering by contrastive representation disentanglement.

from cdclust import CDC
clusters = CDC(n_clusters=10).fit_predict(images)
"""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cdclust.estimator import CDC

__all__ = ["CDC", "__version__"]
__version__ = version("cdclust")


def __getattr__(name: str) -> Any:
    if name == "CDC":  # imported when asked for: it brings torch and scikit-learn with it
        from cdclust.estimator import CDC

        return CDC
    raise AttributeError(f"module 'cdclust' has no attribute {name!r}")
