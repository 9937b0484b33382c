"""`cdclust apply`: the result of a run taken away, as labels, folders or a data set; whole, or not at all."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cdclust import origin
from cdclust.data import OK, ImageStream
from cdclust.data.files import FileStream
from cdclust.data.stream import in_threads, threads_for
from cdclust.engine.train import Listener
from cdclust.errors import UsageError, UserError
from cdclust.formats import LAYOUTS, Layout, Line, Placed, Sorted, folder_names, read_lines
from cdclust.formats.filenames import Unique, stem_and_ending
from cdclust.formats.place import WAYS, Errand, Gone, place, size_of
from cdclust.formats.plan import MISSING, UNCERTAIN, sizes
from cdclust.jobs import tables
from cdclust.names import cluster_names
from cdclust.run import Run

FORMATS = ("labels", *LAYOUTS)
NOT_WRITTEN = (".xlsx", ".xls", ".ods", ".tsv", ".txt", ".json", ".zip", ".tar")
SPARE = 2**20  # bytes that tables and folders may take


@dataclass(frozen=True)
class How:
    """What `apply` is asked for."""

    format: str | None = None  # none: labels where --out ends like a table, else folders
    files: str = "copy"
    min_confidence: float = 0.0
    source: str | None = None
    root: Path | None = None
    strict: bool = False


def apply(run: Run, out: Path | None, how: How, listener: Listener) -> dict[str, Any]:
    """Write what was asked for and say what is in it; nothing that was there before is changed."""
    form = _format(out, how)
    out = out or _free(f"{run.path.resolve().name}-{form}", ".csv" if form == "labels" else "")
    names, lines = cluster_names(run), read_lines(run, how.min_confidence)
    if form == "labels":
        tables.check_table(out)
        tables.write_table(out, tables.named((line.row() for line in lines), names), names=bool(names))
        return _said(out, form, [Placed(line, "") for line in lines])
    _check_out(out)
    stream = origin.open_images(run, [line.key for line in lines], how.source, how.root)
    lines, rows = _found(lines, stream, how.strict)
    _check_not_inside(out, stream)
    n_clusters = run.recipe().n_clusters
    layout = LAYOUTS[form]
    images = _places(lines, rows, stream, layout, folder_names(n_clusters, names))
    if not any(image.file for image in images):
        raise UserError(f"--min-confidence {how.min_confidence:g}: no image is as sure as that; write a smaller one")
    _check_disk(out, images, rows, stream, how.files)
    with _folder(out) as part:
        brought = _bring(images, rows, stream, part, layout, how.files, listener)
        if how.strict:
            _refuse_missing([image.line for image in brought])
        layout.write(part, Sorted(brought, n_clusters, names))
    return _said(out, form, brought, n_new=len(set(range(len(stream))) - set(rows)))


def _format(out: Path | None, how: How) -> str:
    table = out is not None and out.suffix.lower() in tables.FORMATS
    form = how.format or ("labels" if table else "folders")
    if form not in FORMATS:
        raise UsageError(f"--format {form}: it must be one of {', '.join(FORMATS)}")
    if how.format is None and out is not None and out.suffix.lower() in NOT_WRITTEN:
        raise UsageError(
            f"--out {out}: no such files are written; a table ends in {', '.join(tables.FORMATS)}, a folder in nothing"
        )
    if how.files not in WAYS:
        raise UsageError(f"--files {how.files}: it must be one of {', '.join(WAYS)}")
    if not 0 <= how.min_confidence <= 1:
        raise UsageError(f"--min-confidence {how.min_confidence:g}: it must be from 0 to 1")
    return form


def _free(stem: str, ending: str) -> Path:
    number = 1
    while (path := Path(f"{stem}{'' if number == 1 else f'-{number}'}{ending}")).exists():
        number += 1
    return path


def _said(out: Path, form: str, images: Sequence[Placed], n_new: int = 0) -> dict[str, Any]:
    status = [image.line.status for image in images]
    return {
        "out": str(out),
        "format": form,
        "n_images": len(status),
        "n_sorted": status.count(OK),
        "n_uncertain": status.count(UNCERTAIN),
        "n_unreadable": sum(each.startswith("unreadable") for each in status),
        "n_missing": sum(each.startswith(MISSING) for each in status),
        "n_new": n_new,
        "sizes": {str(cluster): size for cluster, size in sizes(images).items()},
    }


def _check_out(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is a file; name a folder")
    if out.is_dir() and any(out.iterdir()):
        raise UserError(f"--out {out} is not empty, and nothing is written over; choose another folder")
    if out.is_mount() or out.is_symlink() or out.resolve() == Path.cwd():
        raise UserError(f"--out {out} cannot be made anew; name a folder in it, such as {out / 'sorted'}")


def _check_not_inside(out: Path, stream: ImageStream) -> None:
    """Copies among the images would be taken for images by the next run on them."""
    folder = Path(stream.name)
    if not isinstance(stream, FileStream) or not folder.is_dir():
        return
    if out.resolve().is_relative_to(folder.resolve()):
        raise UserError(f"--out {out} lies among the images in {folder}; choose a folder outside, such as {out.name}")


def _found(lines: list[Line], stream: ImageStream, strict: bool) -> tuple[list[Line], list[int]]:
    """Lines, and the row of the stream each is at; one that is not in the stream any more is missing, row -1."""
    if not isinstance(stream, FileStream) and len(stream) != len(lines):  # they are known by their place alone
        raise UserError(f"{stream.name} holds {len(stream):,} images and the run {len(lines):,}; give the run's own")
    there = {key: row for row, key in enumerate(stream.keys)}
    rows = [there.get(line.key, -1) for line in lines]
    found = [
        replace(line, status=f"{MISSING}: not in the source") if row < 0 and line.cluster >= 0 else line
        for line, row in zip(lines, rows, strict=True)
    ]
    gone = [line for line in found if line.status.startswith(MISSING)]
    if 2 * len(gone) > len(lines):
        raise UserError(
            f"{len(gone):,} of the {len(lines):,} images of this run are not in {stream.name} (the first: "
            f"{gone[0].key!r}); say where they are now with --source"
        )
    if strict:
        _refuse_missing(found)
    return found, rows


def _refuse_missing(lines: Sequence[Line]) -> None:
    gone = [line for line in lines if line.status.startswith(MISSING)]
    if gone:
        raise UserError(
            f"--strict: {len(gone):,} images are {gone[0].status} (the first: {gone[0].key!r}); bring them back, say "
            "where they are with --source, or leave --strict out"
        )


def _places(
    lines: list[Line], rows: list[int], stream: ImageStream, layout: Layout, folders: dict[int, str]
) -> list[Placed]:
    """Where each image goes; the names of its folder stay unique whatever the file system makes of them."""
    within: dict[str, Unique] = {}
    placed = []
    for number, (line, row) in enumerate(zip(lines, rows, strict=True)):
        if row < 0 or not (line.sorted or (layout.apart and _has_a_file(line, row, stream))):
            placed.append(Placed(line, ""))
            continue
        folder = layout.folder or (folders[line.cluster] if line.sorted else line.status.partition(":")[0])
        stem, ending = stem_and_ending(_path(stream, row) or line.key)
        if stem.isdecimal() and not _path(stream, row):
            stem, ending = f"{int(stem):06}", ""  # an array's images have numbers
        if layout.folder:
            stem, ending = f"{number:06}", ending.lower()
        if line.cluster >= 0 and _as_png(stream, row, layout):
            ending = ".png"
        placed.append(Placed(line, f"{folder}/{within.setdefault(folder, Unique())(stem + ending)}"))
    return placed


def _path(stream: ImageStream, row: int) -> str | None:
    return stream.paths[row] if isinstance(stream, FileStream) else None


def _as_png(stream: ImageStream, row: int, layout: Layout) -> bool:
    path = _path(stream, row)
    return path is None or bool(layout.endings and not path.lower().endswith(layout.endings))


def _has_a_file(line: Line, row: int, stream: ImageStream) -> bool:
    path = _path(stream, row)
    return line.status == UNCERTAIN or (path is not None and Path(path).is_file())


def _check_disk(out: Path, images: list[Placed], rows: list[int], stream: ImageStream, way: str) -> None:
    """Refuse at once what would not fit."""
    if way != "copy" or not isinstance(stream, FileStream):
        return
    need = SPARE
    for image, row in zip(images, rows, strict=True):
        path = Path(stream.paths[row])
        need += path.stat().st_size if image.file and path.is_file() else 0
    there = out.absolute()
    while not there.exists():
        there = there.parent
    free = shutil.disk_usage(there).free
    if need > free:
        raise UserError(
            f"--out {out}: copies need {need / 2**20:,.0f} MB and {free / 2**20:,.0f} MB are free; make room, or "
            "write --files hardlink or --files symlink"
        )


@contextmanager
def _folder(out: Path) -> Iterator[Path]:
    """A folder beside `out` that takes its name when all is done; what failed or was stopped is taken away again."""
    part = out.with_name(f"{out.name}.part")
    try:
        part.mkdir(parents=True)
    except FileExistsError:
        raise UserError(f"--out {out}: {part} is there, of an attempt that was stopped; remove it first") from None
    except OSError as error:
        raise UserError(f"--out {out} cannot be made: {error.strerror or error}") from error
    try:
        yield part
        if out.exists():
            out.rmdir()  # empty, as was checked; if it is no longer, this says so
        part.rename(out)
    except OSError as error:
        raise UserError(f"--out {out} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _bring(
    images: list[Placed], rows: list[int], stream: ImageStream, part: Path, layout: Layout, way: str, listener: Listener
) -> list[Placed]:
    """All images to their places; one that has gone in the meantime is missing."""
    for folder in {image.file.rpartition("/")[0] for image in images if image.file}:
        (part / folder).mkdir(parents=True, exist_ok=True)

    def bring(number: int) -> Placed:
        image, row = images[number], rows[number]
        if not image.file:
            return image
        target = part / image.file
        readable = image.line.cluster >= 0
        errand = Errand(row, _path(stream, row), target, readable and _as_png(stream, row, layout))
        try:
            place(errand, stream, way)
            return replace(image, size=size_of(target) if layout.sizes else None)
        except Gone as reason:
            target.unlink(missing_ok=True)
            status = f"{MISSING}: {reason}" if readable else image.line.status
            return Placed(replace(image.line, status=status), "")

    brought = []
    for image in in_threads(bring, range(len(images)), threads_for(stream, None)):
        brought.append(image)
        listener.on_work("bringing images", len(brought), len(images))
    for folder in {image.file.rpartition("/")[0] for image in images if image.file}:
        if not any((part / folder).iterdir()):
            (part / folder).rmdir()
    return brought
