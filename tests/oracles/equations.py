"""The paper's equations written out in NumPy, one image and one term at a time."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def unit(x: Array) -> Array:
    return x / np.sqrt((x * x).sum())


def halves(z: Array, n_clusters: int) -> tuple[Array, Array]:
    return unit(z[:n_clusters]), unit(z[n_clusters:])


def equation_2(s_positive: float, s_negatives: Array, tau: float) -> float:
    """-log exp(s_ii / tau) / (sum_k exp(s_ik / tau) + exp(s_ii / tau))."""
    top = np.exp(s_positive / tau)
    return float(-np.log(top / (np.exp(s_negatives / tau).sum() + top)))


def equation_3(s_n_pos: float, s_n: Array, s_c_pos: float, s_c: Array, tau: float) -> float:
    """InfoNCE on s_n whose negatives carry exp((s_c_ik - s_c_ii) / tau); equation 4 has n and c swapped."""
    top = np.exp(s_n_pos / tau)
    return float(-np.log(top / ((np.exp((s_c - s_c_pos) / tau) * np.exp(s_n / tau)).sum() + top)))


def similarities(z_q: Array, z_k: Array, z_neg: Array, n_clusters: int) -> tuple[float, Array, float, Array]:
    """(s_c_ii, s_c_ik, s_n_ii, s_n_ik) of one query, its key and its negatives."""
    q_c, q_n = halves(z_q, n_clusters)
    k_c, k_n = halves(z_k, n_clusters)
    neg = [halves(z, n_clusters) for z in z_neg]
    s_c = np.array([q_c @ c for c, _ in neg])
    s_n = np.array([q_n @ n for _, n in neg])
    return float(q_c @ k_c), s_c, float(q_n @ k_n), s_n


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max())
    return e / e.sum()


def equation_6(z_c_q: Array, z_c_k: Array, codes_q: Array, codes_k: Array, t: float) -> float:
    """Both directions of -sum_k q^(k) log p^(k), halved, averaged over images."""
    total = 0.0
    for i in range(len(z_c_q)):
        p_q, p_k = softmax(z_c_q[i] / t), softmax(z_c_k[i] / t)
        for cluster in range(z_c_q.shape[1]):
            total -= 0.5 * codes_q[i, cluster] * np.log(p_k[cluster])
            total -= 0.5 * codes_k[i, cluster] * np.log(p_q[cluster])
    return total / len(z_c_q)


def sinkhorn_as_written(scores: Array, epsilon: float, iterations: int) -> Array:
    """Diag(u) exp(scores / epsilon) Diag(v) with u, v found by turns, clusters first; (B, K) out, rows sum to 1."""
    kernel = np.exp(scores.T.astype(np.longdouble) / epsilon)  # (K, B), as the paper has it
    k, b = kernel.shape
    v = np.ones(b, np.longdouble) / kernel.sum()
    for _ in range(iterations):
        u = (1 / k) / (kernel @ v)
        v = (1 / b) / (kernel.T @ u)
    return np.asarray((u[:, None] * kernel * v[None]).T * b, np.float64)
