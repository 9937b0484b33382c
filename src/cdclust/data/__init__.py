"""Where images come from: arrays, folders, manifests, named data sets.

Nothing here augments an image or knows about a network.
"""

from cdclust.data.files import FileList
from cdclust.data.imageset import OK, UNKNOWN, Catalogue, ImageSet
from cdclust.data.load import load_source, open_stream
from cdclust.data.named import DATA_SETS, data_root
from cdclust.data.sources import list_source
from cdclust.data.splits import available_splits
from cdclust.data.stream import ImageStream, read_batches

__all__ = [
    "DATA_SETS",
    "OK",
    "UNKNOWN",
    "Catalogue",
    "FileList",
    "ImageSet",
    "ImageStream",
    "available_splits",
    "data_root",
    "list_source",
    "load_source",
    "open_stream",
    "read_batches",
]
