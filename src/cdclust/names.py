"""names.csv in a run folder: what somebody who has looked at the clusters calls them."""

import csv
import unicodedata
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

from cdclust.errors import UserError
from cdclust.run import Run

FILE = "names.csv"
COLUMNS = ("cluster", "name")
MOST_BYTES = 16 * 2**20
LONGEST = 200  # characters of a name
SEPARATORS = (",", ";", "\t")  # what spreadsheets write, by the country they are used in


def cluster_names(run: Run) -> dict[int, str]:
    """The names that names.csv gives; empty where there is no such file, and without the clusters it leaves unnamed."""
    path = run.file(FILE)
    if not path.exists():
        return {}
    n_clusters = run.recipe().n_clusters
    names: dict[int, str] = {}
    seen: dict[int, int] = {}
    for line, number, text in _rows(path):
        cluster = _cluster(number, line, n_clusters)
        if cluster in seen:
            raise UserError(f"{path}: cluster {cluster} stands in lines {seen[cluster]} and {line}; keep one of them")
        seen[cluster] = line
        name = _name(text, line)
        if name in names.values():
            other = next(each for each, taken in names.items() if taken == name)
            raise UserError(
                f"{path}: clusters {other} and {cluster} are both called {shown(name)!r}; give each a name of its own, "
                f"such as {shown(name) + ' 2'!r}"
            )
        if name:
            names[cluster] = name
    return names


def called(cluster: int, names: Mapping[int, str]) -> str:
    """A cluster's number, and its name where it has one: for people, on one line of a terminal."""
    return f"{cluster} {shown(names[cluster])}" if cluster in names else str(cluster)


def shown(name: str) -> str:
    """A name for a terminal: characters that could move the cursor or turn the text around become \\u202e and so on."""
    return "".join(c if c.isprintable() or c == "\u200d" else c.encode("unicode_escape").decode() for c in name)


def _rows(path: Path) -> list[tuple[int, str, str]]:
    """Line, cluster and name of each row that says anything."""
    text = _text(path)
    header = text.partition("\n")[0]
    separator = max(SEPARATORS, key=header.count)
    reader = csv.reader(StringIO(text, newline=""), delimiter=separator)
    try:
        columns = [column.strip().lower() for column in next(reader, [])]
        if sorted(columns) != sorted(COLUMNS):
            raise UserError(f"{path}: the first line must be cluster,name; it is {shown(header.strip())[:80]!r}")
        at = columns.index("cluster")
        rows = []
        for row in reader:
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(COLUMNS):
                raise UserError(
                    f"{path}: line {reader.line_num} has {len(row)} columns, not 2; put a name that holds a "
                    f"{separator!r} in double quotes"
                )
            rows.append((reader.line_num, row[at].strip(), row[1 - at]))
    except csv.Error as error:
        raise UserError(f"{path}: line {reader.line_num} cannot be read as CSV ({error}); mend or remove it") from None
    return rows


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise UserError(f"{path} is larger than {MOST_BYTES // 2**20} MB; it holds a line a cluster and no more")
        return content.decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8; save it again as 'CSV UTF-8'") from None


def _cluster(text: str, line: int, n_clusters: int) -> int:
    cluster = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    if not 0 <= cluster < n_clusters:
        raise UserError(
            f"{FILE}, line {line}: {shown(text)[:40]!r} is no cluster of this run; they are 0 to {n_clusters - 1}"
        )
    return cluster


def _name(text: str, line: int) -> str:
    """A name in the composed form, its white space made single blanks."""
    name = " ".join(unicodedata.normalize("NFC", text).split())
    if len(name) > LONGEST:
        raise UserError(f"{FILE}, line {line}: a name of {len(name)} characters; write at most {LONGEST}")
    return name
