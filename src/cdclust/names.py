"""names.csv: what people call the clusters of a run."""

import csv

from cdclust.errors import UserError
from cdclust.run import Run


def cluster_names(run: Run) -> dict[int, str]:
    """The name of each cluster that names.csv in the run folder gives one; none without the file."""
    path = run.file("names.csv")
    if not path.exists():
        return {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        return {int(row["cluster"]): row["name"].strip() for row in rows if row["name"] and row["name"].strip()}
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        raise UserError(f"{path} cannot be read; write lines such as 3,cats under the header cluster,name") from None
