"""Accuracy by trying every one-to-one matching; nothing is shared with the implementation."""

from itertools import permutations


def brute_force_accuracy(clusters: list, labels: list) -> float:
    names, classes = sorted(set(clusters)), sorted(set(labels))
    few, many, flipped = (names, classes, False) if len(names) <= len(classes) else (classes, names, True)
    best = 0
    for chosen in permutations(many, len(few)):
        pairs = {(b, a) if flipped else (a, b) for a, b in zip(few, chosen, strict=True)}
        best = max(best, sum(pair in pairs for pair in zip(clusters, labels, strict=True)))
    return best / len(labels)


def brute_force_rand(clusters: list, labels: list) -> float:
    """The adjusted Rand index, pair of images by pair of images."""
    n = len(labels)
    pairs = [(i, j) for i in range(n) for j in range(i)]
    same_cluster = [clusters[i] == clusters[j] for i, j in pairs]
    same_class = [labels[i] == labels[j] for i, j in pairs]
    both = sum(a and b for a, b in zip(same_cluster, same_class, strict=True))
    a, b = sum(same_cluster), sum(same_class)
    if both == a == b:
        return 1.0
    expected = a * b / len(pairs)
    return (both - expected) / ((a + b) / 2 - expected)
