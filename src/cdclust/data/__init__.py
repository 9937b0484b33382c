"""Where images come from: arrays, folders, manifests, named data sets.

Nothing here augments an image or knows about a network.
"""

from cdclust.data.files import FileList
from cdclust.data.imageset import OK, UNKNOWN, ImageSet
from cdclust.data.load import list_source, load_source
from cdclust.data.named import DATA_SETS, data_root
from cdclust.data.splits import available_splits

__all__ = [
    "DATA_SETS",
    "OK",
    "UNKNOWN",
    "FileList",
    "ImageSet",
    "available_splits",
    "data_root",
    "list_source",
    "load_source",
]
